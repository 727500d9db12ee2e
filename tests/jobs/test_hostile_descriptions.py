"""Whatever a description says, it is taken or refused by an `InputError` of one line, and at once."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairway.errors import InputError
from fairway.jobs.description import JobDescription, job_of, parse_job

FIELDS = sorted(JobDescription.model_fields)
LONG = "x" * 1_000_000

HOSTILE = {
    "one name twice among many": '{"run": "a", ' + ", ".join(f'"k{n}": 1' for n in range(60_000)) + ', "z": 1, "z": 1}',
    "many names": json.dumps({"run": "a"} | {f"k{n}": 1 for n in range(60_000)}),
    "a long name": json.dumps({"run": "a", LONG: 1}),
    "many accelerators": json.dumps({"run": "a", "resources": {"accelerators": [f"a{n}" for n in range(60_000)]}}),
    "a span of many digits": json.dumps({"run": "a", "deadline": "1" * 60 + "!"}),
    "a span of very many digits": json.dumps({"run": "a", "deadline": "1" * 300_000 + "!"}),
    "a span of many parts": json.dumps({"run": "a", "grace": "1e1" * 30 + "!"}),
    "a span after many spaces": json.dumps({"run": "a", "grace": "1" + " " * 300_000 + "!"}),
    "many empty lines": "\n" * 120_000 + "run: 5",
    "a number in base 16": "run: a\nsteps: 0x" + "F" * 100_000,
    "a number in base 60": "run: a\nsteps: " + "1:" * 20_000 + "1",
    "a date as a name": "run: a\n2001-01-01: x",
    "bytes as a name": "run: a\n? !!binary aGVsbG8=\n: x",
    "a date that is none": "run: a\nsteps: !!timestamp abc",
    "a truth that is none": "run: a\nsteps: !!bool abc",
    "a number that is none": "run: a\nsteps: !!int ''",
    "many brackets": "run: " + "[" * 60_000,
    "many brackets in JSON": '{"run": ' + "[" * 500_000,
    "many braces": "run: " + "{a: " * 30_000,
    "an alias": "a: &a [x, x]\nrun: [*a, *a]",
    "half a character": 'run: "\\ud800"',
    "a character of code 0": json.dumps({"run": "a\0b"}),
    "the first hour of all": json.dumps({"run": "a", "deadline": "0001-01-01T00:00:00+14:00"}),
    "the last hour of all": "run: a\ndeadline: 9999-12-31T23:59:59-14:00",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_description_is_refused_in_one_line(what: str) -> None:
    text = HOSTILE[what]
    with pytest.raises(InputError) as caught:
        parse_job(text, "job" if text.startswith("{") else "job.yaml")
    assert len(str(caught.value)) <= 400
    assert str(caught.value).isprintable()


offsets = st.integers(-24 * 60 + 1, 24 * 60 - 1).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=st.none() | offsets))
@example(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))))
@example(datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-14))))
def test_every_date_is_taken_or_refused(moment: datetime) -> None:
    for given_as in (moment.isoformat(), moment.isoformat(sep=" ")):
        for text in (json.dumps({"run": "a", "deadline": given_as}), f"run: a\ndeadline: {given_as}"):
            with suppress(InputError):
                job = parse_job(text, "job" if text.startswith("{") else "job.yaml")
                assert isinstance(job.seconds_left(datetime.now(UTC)), float)
                assert job_of(job.document(), "job") == job


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.datetimes().map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300)
@given(st.sampled_from(FIELDS), values)
def test_a_field_is_taken_or_refused_whatever_it_holds(field: str, value: Any) -> None:
    document = {"run": "a", field: value}
    with suppress(InputError):
        job = job_of(document, "job")
        assert job_of(job.document(), "job") == job
    with suppress(InputError):
        parse_job(json.dumps(document), "job")
    with suppress(InputError):
        parse_job(json.dumps(document), "job.yaml")


@pytest.mark.parametrize("bracket", ["[", "{", "[? "])
def test_brackets_in_yaml_are_refused_before_they_take_long(bracket: str) -> None:
    """PyYAML needs time that grows with the square of how many are open: 5 s of a processor for 60 KB."""
    began = time.process_time()
    with pytest.raises(InputError, match="nested too deeply"):
        parse_job(f"run: {bracket * 40_000}", "job.yaml")
    assert time.process_time() - began < 1.0
