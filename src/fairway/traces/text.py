"""Reads the text of a file from outside, or says in one line why that cannot be done."""

from __future__ import annotations

from pathlib import Path

from fairway.errors import InputError


def read_text(path: Path | str) -> str:
    """The text of a file in UTF-8."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:  # not UTF-8, or a path with a zero byte
        raise InputError(f"{path}: not text in UTF-8; unpack or convert the file first") from None
