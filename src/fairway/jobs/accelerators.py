"""Which accelerators a job asks for: how many, and of which types any one will do.

`A100`, `A100:2`, `[A100, V100]:2`, a list of such words or SkyPilot's `{A100: 2, V100: 2}` all say it. A gang sits on
one type, so the count is the same whichever type it gets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fairway.documents import shown
from fairway.errors import InputError
from fairway.options import nearest

_MOST = 10_000
_MOST_TYPES = 1000
_ONE = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?::\s*(\d+)\s*)?")
_SEVERAL = re.compile(r"\s*\[([^\[\]]*)\]\s*(?::\s*(\d+)\s*)?")
_EXAMPLES = "'A100:2', '[A100, V100]:2' or {A100: 2}"


@dataclass(frozen=True, slots=True)
class AcceleratorRequest:
    """So many workers, all of one of these types; no types means that any will do."""

    types: tuple[str, ...] = ()
    count: int = 1

    @classmethod
    def read(cls, given: object) -> AcceleratorRequest:
        """From any of its forms; raises an error that does not yet say in which field."""
        if isinstance(given, AcceleratorRequest):
            return given
        if isinstance(given, str):
            return cls._of_text(given)
        if isinstance(given, dict):
            return cls._of_pairs([(_one(name)[0], _count(count)) for name, count in given.items()])
        if isinstance(given, list):
            return cls._of_pairs([_one(word) for word in given])
        raise InputError(f"{shown(given)} given, expected {_EXAMPLES}")

    def __str__(self) -> str:
        """The form in which it is stored, sent and shown: `a100`, `[a100, v100]:2`; `any` where any type will do."""
        names = f"[{', '.join(self.types)}]" if len(self.types) > 1 else "".join(self.types) or "any"
        return names if self.count == 1 else f"{names}:{self.count}"

    @classmethod
    def _of_text(cls, text: str) -> AcceleratorRequest:
        several = _SEVERAL.fullmatch(text)
        if not several:
            return cls._of_pairs([_one(text)])
        words = [word for word in several[1].split(",") if word.strip()]
        count = _count(several[2] or 1)
        if any(":" in word for word in words):
            raise InputError(f"'{text}' given, expected the count once, after the bracket, as in '[A100, V100]:2'")
        return cls._of_pairs([(_one(word)[0], count) for word in words])

    @classmethod
    def _of_pairs(cls, pairs: list[tuple[str, int]]) -> AcceleratorRequest:
        if not pairs:
            raise InputError(f"no accelerator type given, expected {_EXAMPLES}; leave it out if any will do")
        if len(pairs) > _MOST_TYPES:
            raise InputError(f"{len(pairs)} accelerator types given, expected at most {_MOST_TYPES}")
        types = [name.strip().lower() for name, _ in pairs]
        repeated = next((name for name in types if types.count(name) > 1), None)
        if repeated:
            raise InputError(f"'{repeated}' given twice; keep one of them")
        counts = sorted({count for _, count in pairs})
        if len(counts) > 1:
            raise InputError(f"counts {counts[0]} and {counts[-1]} given, expected the same count for every type")
        return cls(tuple(types), counts[0])

    def among(self, known: Sequence[str]) -> tuple[str, ...]:
        """The types of a cluster that will do, as the cluster spells them; refuses one that the cluster lacks."""
        spelled = {name.lower(): name for name in known}
        for name in self.types:
            if name not in spelled:
                hint = nearest(name, spelled)
                raise InputError(f"'{name}' is not an accelerator of this cluster{hint}; known: {', '.join(known)}")
        return tuple(spelled[name] for name in self.types) or tuple(known)


def _one(word: object) -> tuple[str, int]:
    match = _ONE.fullmatch(word) if isinstance(word, str) else None
    if not match:
        raise InputError(f"{shown(word)} given, expected {_EXAMPLES}")
    return match[1], _count(match[2] or 1)


def _count(given: object) -> int:
    text = str(given)
    if isinstance(given, bool) or not re.fullmatch(r"\d{1,9}(\.0)?", text) or not 1 <= int(float(text)) <= _MOST:
        raise InputError(f"a count of {shown(given)} given, expected a whole number from 1 to {_MOST}")
    return int(float(text))
