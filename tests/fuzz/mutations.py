"""Makes hostile bytes out of harmless ones, the same for the same seed: in tests, and where no fuzzer is installed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from random import Random

from fairway.errors import FairwayError
from tests.fuzz.doors import Door

SLOW_SECONDS = 5.0
"""Of a processor, for one input; no more than a few kilobytes are ever given."""

_HOSTILE = (
    b"[" * 3000, b"{" * 3000, b'{"a":' * 2000, b"- " * 2000, b"? " * 500, b"9" * 6000, b"-", b"-0", b"1e309", b"1e-309",
    b"NaN", b"Infinity", b"-Infinity", b"1e308", b"5e-324", b"null", b"true", b'""', b"\x00", b"\xff\xfe",
    b"\xef\xbb\xbf",
    "\u202e\ud7ff\U0010ffff\u2028".encode(), b"\x1b[2J", b"\r\n", b"\n\n", b"*a", b"&a", b"!!python/name:os", b"<<: *a",
    b"0x7f", b"1_000", b"12:30:45", b"2024-99-99", b"0001-01-01T00:00:00+14:00", b"\\u0000", b"\\ud800", b"%00", b"'",
    b'"',
    b",", b":", b"=", b"/", b"../../etc/passwd", b"a" * 5000, b"\t", b"9223372036854775808", b"-1", b"0", b"1e400",
)  # fmt: skip


def mutated(beginnings: tuple[bytes, ...], count: int, seed: int) -> Iterator[bytes]:
    """The beginnings themselves, what is hostile by itself, and then mixtures."""
    yield from beginnings
    yield from _HOSTILE
    draws = Random(seed)
    for _ in range(count):
        data = draws.choice(beginnings)
        for _ in range(draws.choice((1, 1, 2, 4))):
            data = _changed(data, draws, beginnings)
        yield data[:20_000]


def _changed(data: bytes, draws: Random, beginnings: tuple[bytes, ...]) -> bytes:
    place, length = draws.randint(0, len(data)), draws.choice((0, 1, 1, 2, 8, 40))
    match draws.randrange(6):
        case 0:  # something hostile in place of a part
            return data[:place] + draws.choice(_HOSTILE) + data[place + length :]
        case 1:  # a part is gone
            return data[:place] + data[place + length :]
        case 2:  # a part comes again
            return data[:place] + data[place : place + length] * draws.choice((2, 3, 200)) + data[place:]
        case 3:  # another byte
            return data[:place] + bytes([draws.randrange(256)]) + data[place + 1 :]
        case 4:  # a value is replaced whole
            begin = max(data.rfind(b":", 0, place), data.rfind(b"=", 0, place), data.rfind(b",", 0, place)) + 1
            ends = [end for mark in (b",", b"}", b"]", b"\n") if (end := data.find(mark, begin)) >= 0]
            return data[:begin] + draws.choice(_HOSTILE) + data[min(ends, default=len(data)) :]
        case _:  # two halves
            other = draws.choice(beginnings)
            return data[:place] + other[draws.randint(0, len(other)) :]


def try_door(door: Door, data: bytes) -> None:
    """Give bytes to a door: they are taken, or refused in one line, and soon."""
    began = time.process_time()
    with suppress(FairwayError):
        door.enter(data)
    took = time.process_time() - began
    assert took < SLOW_SECONDS, f"{took:.1f} s of a processor for {len(data)} bytes"
