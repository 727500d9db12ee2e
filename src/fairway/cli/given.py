"""Reads what a command is given: a file or standard input, and sizes and spans in options."""

from __future__ import annotations

import sys
from pathlib import Path

from fairway.cli.output import STDOUT
from fairway.errors import InputError


def read_given(name: str, what: str = "a problem file") -> tuple[bytes, str]:
    """The content of a file, or of standard input for `-`, and what to call it in errors; `what` is expected there."""
    if name == STDOUT and sys.stdin is None:
        raise InputError(f"standard input: closed; name {what} or pipe one in")
    if name != STDOUT and Path(name).is_dir():
        raise InputError(f"{name}: a directory given, expected {what}{_one_in(Path(name))}")
    try:
        content = sys.stdin.buffer.read() if name == STDOUT else Path(name).read_bytes()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}; name {what}") from None
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


def _one_in(directory: Path) -> str:
    """A file of the directory that may be meant, as the end of a sentence."""
    found = sorted(path for path in directory.iterdir() if path.suffix in {".yaml", ".yml", ".json"})
    return f", as in {found[0]}" if found else "; there is no .yaml or .json file in it"
