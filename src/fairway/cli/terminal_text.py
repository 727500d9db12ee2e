"""Text of others for the terminal of a user: what a job prints must not move the cursor, set titles or ask for answers.

Kept are line breaks, tabs, the carriage return of progress bars and the sequences that set colours (SGR); every other
control character is shown instead, as `^[` for escape. Where output is no terminal it is passed on as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_COLOUR = re.compile(r"\x1b\[[0-9;:]{0,40}m")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;:]{0,40})?\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""All that does something, with what turns the direction of writing around; but for tab, line feed and return."""

_RESET = "\x1b[0m"


def harmless(pieces: Iterable[str]) -> Iterator[str]:
    """The text with every control character but those kept in a form that can be seen; ends in the usual colours."""
    rest, coloured = "", False
    for piece in pieces:
        text = rest + piece
        unfinished = _UNFINISHED.search(text)
        rest, text = (unfinished[0], text[: unfinished.start()]) if unfinished else ("", text)
        coloured = coloured or _COLOUR.search(text) is not None
        yield _shown(text)
    yield _shown(rest) + (_RESET if coloured else "")


def _shown(text: str) -> str:
    parts, begin = [], 0
    for colour in _COLOUR.finditer(text):
        parts += [_CONTROL.sub(_caret, text[begin : colour.start()]), colour[0]]
        begin = colour.end()
    return "".join([*parts, _CONTROL.sub(_caret, text[begin:])])


def _caret(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"^{chr(number ^ 64)}" if number < 128 else f"<U+{number:04X}>"
