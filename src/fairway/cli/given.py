"""Reads what a command is given: a file or standard input, and sizes and spans in options."""

from __future__ import annotations

import sys
from pathlib import Path

from fairway.cli.output import STDOUT
from fairway.errors import InputError


def read_given(name: str) -> tuple[bytes, str]:
    """The content of a file, or of standard input for `-`, and what to call it in errors."""
    if name == STDOUT and sys.stdin is None:
        raise InputError("standard input: closed; name a problem file or pipe one in")
    try:
        content = sys.stdin.buffer.read() if name == STDOUT else Path(name).read_bytes()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}; name a problem file") from None
    return content, "standard input" if name == STDOUT else name


def size_given(option: str, given: str) -> int:
    """The bytes that an option names."""
    from fairway.quantities import bytes_of

    try:
        return bytes_of(given)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None


def span_given(option: str, given: str) -> float:
    """The seconds that an option names."""
    from fairway.quantities import seconds_of

    try:
        return seconds_of(given)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None
