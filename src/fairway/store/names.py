"""Which names may be stored: ids become parts of paths and addresses, the others only have to be readable text."""

from __future__ import annotations

import re

from fairway.errors import InputError

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LONGEST = 256


def checked_id(value: str, what: str) -> str:
    """An id as it is; refuses one that could not be the name of a directory, or would hide in a listing."""
    if not _ID.fullmatch(value):
        raise InputError(
            f"{what}: {_shown(value)} given, expected 1 to 128 letters, digits, '.', '_' and '-', "
            "the first a letter or digit"
        )
    return value


def checked_name(value: str, what: str) -> str:
    """A name as it is; refuses one that is empty, very long or holds characters that cannot be printed."""
    if not (0 < len(value) <= _LONGEST and value.isprintable()):
        raise InputError(f"{what}: {_shown(value)} given, expected 1 to {_LONGEST} printable characters")
    return value


def _shown(value: str) -> str:
    return repr(value if len(value) <= 40 else f"{value[:39]}…")
