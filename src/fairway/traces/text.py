"""Reads the text of a file from outside, or says in one line why that cannot be done."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

from fairway.errors import InputError

_GZIP = b"\x1f\x8b"
_MOST_BYTES = 4 * 2**30


def _unpacked(content: bytes, path: Path | str) -> bytes:
    """What a file packed by gzip holds, as far as a trace may be large."""
    try:
        with gzip.open(io.BytesIO(content)) as file:
            found = file.read(_MOST_BYTES + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"{path}: packed by gzip, but cannot be unpacked: {error}") from None
    if len(found) > _MOST_BYTES:
        raise InputError(f"{path}: more than {_MOST_BYTES // 2**30} GB when unpacked; keep a part of it")
    return found


def read_text(path: Path | str) -> str:
    """The text of a file in UTF-8, packed by gzip or not."""
    try:
        content = Path(path).read_bytes()
        if content[:2] == _GZIP:
            content = _unpacked(content, path)
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:  # not UTF-8, or a path with a zero byte
        raise InputError(f"{path}: not text in UTF-8; unpack or convert the file first") from None
