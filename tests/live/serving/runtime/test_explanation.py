"""What a stage raised, in words that are short and safe whatever its author wrote."""

from __future__ import annotations

import logging

import pytest

from fairway.live.serving.runtime.explanation import explained, kind_of, words_of


class _RaisesError(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


def test_words_are_one_line_of_500_characters() -> None:
    assert words_of(ValueError("one\n  two\tthree")) == "one two three"
    assert words_of(ValueError("x" * 499)) == "x" * 499
    assert words_of(ValueError("x" * 501)) == "x" * 500
    assert words_of(ValueError("")) == ""


def test_of_a_long_text_only_the_beginning_is_looked_at() -> None:
    assert words_of(ValueError(" " * 1999 + "xy")) == "x"
    assert words_of(ValueError(" " * 2000 + "x")) == ""


def test_words_that_cannot_be_read_are_said_to_be_so() -> None:
    assert words_of(_RaisesError()) == "(what it says cannot be read: its __str__ raised SystemExit)"


def test_what_no_encoding_knows_is_written_out() -> None:
    assert words_of(ValueError("a\ud800b")) == "a\\ud800b"


def test_the_name_of_a_class_is_cut_at_100_characters() -> None:
    assert kind_of(ValueError()) == "ValueError"
    assert kind_of(type("E" * 101, (Exception,), {})()) == "E" * 100
    assert kind_of(type("E" * 100, (Exception,), {})()) == "E" * 100


def _raised(problem: Exception, cause: BaseException | None = None) -> Exception:
    try:
        raise problem from cause
    except Exception as error:
        return error


def test_the_log_has_the_traceback_under_the_name_that_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        told = explained("stage 'a'", _raised(ValueError("no")))
    assert told.startswith("stage 'a' raised ValueError: no (trace ")
    trace = told.partition("(trace ")[2].partition(",")[0]
    assert len(trace) == 12
    assert trace in caplog.text
    assert "in _raised" in caplog.text
    assert caplog.records[0].getMessage().endswith("ValueError: no")


def test_causes_are_in_the_log_if_they_can_be_read(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        explained("stage", _raised(ValueError("no"), KeyError("deep")))
    assert "KeyError: 'deep'" in caplog.text
    assert "direct cause" in caplog.text
    caplog.clear()
    try:
        try:
            raise KeyError("before")
        except KeyError:
            raise ValueError("after")  # noqa: B904 - so that it has a context and no cause
    except ValueError as error:
        with caplog.at_level(logging.ERROR):
            explained("stage", error)
    assert "KeyError: 'before'" in caplog.text


def test_of_a_log_too_long_the_end_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        explained("stage", _raised(ValueError("the end"), KeyError("y" * 30_000)))
    said = caplog.records[0].getMessage()
    assert said[-30:].rstrip().endswith("ValueError: the end")
    assert 20_000 < len(said) < 20_100
