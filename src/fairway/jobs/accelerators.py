"""Which accelerators a job asks for: how many, and of which types any one will do.

`A100`, `A100:2`, `[A100, V100]:2`, a list of such words or SkyPilot's `{A100: 2, V100: 2}` all say it. A gang sits on
one type, so the count is the same whichever type it gets. A number below 1, as in `A100:0.5`, is a part of one
accelerator, of which other jobs may have the rest. A size, as in `A100:20GB`, is as large a part as has so much of the
accelerator's memory; which part that is, only the cluster knows that the job is submitted to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairway.documents import shown
from fairway.errors import InputError
from fairway.options import nearest
from fairway.quantities import bytes_of

_MOST = 10_000
_MOST_TYPES = 1000
LEAST_PART = 0.001
"""The smallest part of an accelerator that is counted."""

_SIZE = re.compile(r"(?:\d+(?:\.\d+)?|\.\d+)\s*[kKmMgGtT]?i?[bB]")
_AMOUNT = rf"{_SIZE.pattern}|\d+(?:\.\d+)?|\.\d+"
_ONE = re.compile(rf"\s*([A-Za-z0-9][\w.-]*)\s*(?::\s*({_AMOUNT})\s*)?")
_SEVERAL = re.compile(rf"\s*\[([^\[\]]*)\]\s*(?::\s*({_AMOUNT})\s*)?")
_EXAMPLES = "'A100:2', '[A100, V100]:2' or {A100: 2}"


@dataclass(frozen=True, slots=True)
class AcceleratorRequest:
    """So many workers, all of one of these types; no types means that any will do.

    `part` is how much of the worker it asks for, where it is less than a whole one. With `memory_bytes`, it is the part
    that has so much device memory, which is not known yet (`with_parts`).
    """

    types: tuple[str, ...] = ()
    count: int = 1
    part: float = 1.0
    memory_bytes: int | None = None

    @classmethod
    def read(cls, given: object) -> AcceleratorRequest:
        """From any of its forms; raises an error that does not yet say in which field."""
        if isinstance(given, AcceleratorRequest):
            return given
        if isinstance(given, str):
            return cls._of_text(given)
        if isinstance(given, dict):
            return cls._of_pairs([(_one(name)[0], _amount(count)) for name, count in given.items()])
        if isinstance(given, list):
            return cls._of_pairs([_one(word) for word in given])
        raise InputError(f"{shown(given)} given, expected {_EXAMPLES}")

    def __str__(self) -> str:
        """The form in which it is stored, sent and shown: `a100`, `[a100, v100]:2`; `any` where any type will do."""
        names = f"[{', '.join(self.types)}]" if len(self.types) > 1 else "".join(self.types) or "any"
        if self.memory_bytes is not None:
            return f"{names}:{self.memory_bytes}B"
        return names if self.workers == 1 else f"{names}:{self.workers:g}"

    @property
    def workers(self) -> float:
        """How many workers it asks for, a part of one counted as that."""
        return self.count if self.part == 1 else self.count * self.part

    @classmethod
    def _of_text(cls, text: str) -> AcceleratorRequest:
        several = _SEVERAL.fullmatch(text)
        if not several:
            return cls._of_pairs([_one(text)])
        words = [word for word in several[1].split(",") if word.strip()]
        count = _amount(several[2] or 1)
        if any(":" in word for word in words):
            raise InputError(f"'{text}' given, expected the count once, after the bracket, as in '[A100, V100]:2'")
        return cls._of_pairs([(_one(word)[0], count) for word in words])

    @classmethod
    def _of_pairs(cls, pairs: list[tuple[str, float | Memory]]) -> AcceleratorRequest:
        if not pairs:
            raise InputError(f"no accelerator type given, expected {_EXAMPLES}; leave it out if any will do")
        if len(pairs) > _MOST_TYPES:
            raise InputError(f"{len(pairs)} accelerator types given, expected at most {_MOST_TYPES}")
        types = [name.strip().lower() for name, _ in pairs]
        repeated = next((name for name in types if types.count(name) > 1), None)
        if repeated:
            raise InputError(f"'{repeated}' given twice; keep one of them")
        sizes = {count for _, count in pairs if isinstance(count, Memory)}
        counts = sorted({count for _, count in pairs if not isinstance(count, Memory)})
        if len(sizes) + min(len(counts), 1) > 1:
            raise InputError("several amounts of memory given, or memory and a count; give the same for every type")
        if sizes:
            return cls(tuple(types), memory_bytes=sizes.pop().bytes)
        if len(counts) > 1:
            raise InputError(f"counts {counts[0]:g} and {counts[-1]:g} given, expected the same count for every type")
        if counts[0] < 1:
            return cls(tuple(types), part=counts[0])
        return cls(tuple(types), int(counts[0]))

    def with_parts(self, memory_bytes: Mapping[str, int | None]) -> AcceleratorRequest:
        """The same with the part that has the memory asked for, by what the types of a cluster have.

        Of several types that will do, it is the largest part, so that a job fits on any of them.
        """
        if self.memory_bytes is None:
            return self
        known = {name.lower(): memory for name, memory in memory_bytes.items()}
        part = 0.0
        for name in self.among(list(memory_bytes)):
            has = known[name.lower()]
            if has is None:
                raise InputError(
                    f"{self.memory_bytes / 1e9:g} GB of '{name}' asked for, but how much memory it has is not known; "
                    f"ask for a part, as in {name}:0.5, or declare it with 'fairway up --device-memory {name}=40GB'"
                )
            if has < self.memory_bytes:
                raise InputError(f"{self.memory_bytes / 1e9:g} GB of '{name}' asked for, which has {has / 1e9:g} GB")
            part = max(part, math.ceil(self.memory_bytes / has / LEAST_PART - 1e-9) * LEAST_PART)
        return AcceleratorRequest(self.types, part=round(part, 3))

    def among(self, known: Sequence[str]) -> tuple[str, ...]:
        """The types of a cluster that will do, as the cluster spells them; refuses one that the cluster lacks."""
        spelled = {name.lower(): name for name in known}
        for name in self.types:
            if name not in spelled:
                hint = nearest(name, spelled)
                raise InputError(f"'{name}' is not an accelerator of this cluster{hint}; known: {', '.join(known)}")
        return tuple(spelled[name] for name in self.types) or tuple(known)


@dataclass(frozen=True, slots=True)
class Memory:
    """So much of an accelerator's memory, in place of a count."""

    bytes: int


def _one(word: object) -> tuple[str, float | Memory]:
    match = _ONE.fullmatch(word) if isinstance(word, str) else None
    if not match:
        raise InputError(f"{shown(word)} given, expected {_EXAMPLES}")
    return match[1], _amount(match[2] or 1)


def _amount(given: object) -> float | Memory:
    """A count, a part, or a size of memory."""
    if not (isinstance(given, str) and _SIZE.fullmatch(given.strip())):
        return _count(given)
    size = bytes_of(given)
    if not size:
        raise InputError(f"{shown(given)} of memory given, expected more than none")
    return Memory(size)


def _count(given: object) -> float:
    text = str(given)
    if (
        isinstance(given, bool)
        or not re.fullmatch(r"\d{1,9}(\.\d{1,9})?|\.\d{1,9}", text)
        or not 0 < float(text) <= _MOST
    ):
        raise InputError(
            f"a count of {shown(given)} given, expected a whole number from 1 to {_MOST}, or a part of one accelerator "
            "below 1, as in 0.5"
        )
    count = float(text)
    if count >= 1 and count != int(count):
        raise InputError(
            f"a count of {shown(given)} given, expected a whole number, or a part of a single accelerator below 1; "
            "a job has either whole ones or a part of one"
        )
    if count < 1 and abs(count / LEAST_PART - round(count / LEAST_PART)) > 1e-6:
        raise InputError(
            f"a part of {shown(given)} given, expected one in thousandths, as in {max(round(count, 3), LEAST_PART):g}"
        )
    return int(count) if count >= 1 else count
