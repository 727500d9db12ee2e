"""What a job prints does nothing to the terminal of the user who reads it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.cli.jobs import logs
from fairway.cli.jobs.logs import print_pieces
from fairway.cli.terminal_text import harmless


def shown(*pieces: str) -> str:
    return "".join(harmless(pieces))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\ttext\r\n", "plain\ttext\r\n"),
        ("\x1b]0;title\x07", "^[]0;title^G"),  # sets the title of the window
        ("\x1b[2J\x1b[H", "^[[2J^[[H"),  # clears the screen
        ("\x1b[6n\x1bP+q\x1b\\", "^[[6n^[P+q^[\\"),  # asks the terminal, which types the answer
        ("\x9b31m\x7f\x00", "<U+009B>31m^?^@"),
        ("\u202eevil", "<U+202E>evil"),  # from right to left
        ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m\x1b[0m"),
        ("\x1b", "^["),
        ("\x1b[31", "^[[31"),
    ],
)
def test_only_colours_do_something(text: str, expected: str) -> None:
    assert shown(text) == expected
    assert shown(*text) == expected, "also where it comes in pieces"


@given(st.lists(st.text(st.sampled_from("a\x1b[]0;:31mHJ\x07\x9b\n\r\u202e"), max_size=20), max_size=6))
def test_nothing_but_colours_is_left_however_it_is_cut(pieces: list[str]) -> None:
    text = shown(*pieces)
    assert re.fullmatch(r"([^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]|\x1b\[[0-9;:]*m)*", text)
    assert text == shown("".join(pieces))


def test_a_terminal_is_protected_and_a_file_gets_what_was_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_pieces(["\x1b[2Jx"])
    assert capsys.readouterr().out == "\x1b[2Jx"
    monkeypatch.setattr(logs.sys.stdout, "isatty", lambda: True, raising=False)
    print_pieces(["\x1b[2Jx"])
    assert capsys.readouterr().out == "^[[2Jx"
