"""Numerical loops as machine code: compiled ahead where Fairway was built, or else while they run.

A loop is a function of plain Python and numpy, marked with `compiled` if other code calls it and with `compiled_within`
if only such functions do. Building Fairway compiles all of them into one library (`ahead`), which `library` finds and
calls: a user needs no compiler, and nothing is compiled on first use. Where the library is missing, or was made from
other source than this, numba compiles each function when it is first called; without numba, Python interprets them.
`FAIRWAY_COMPILED` says which of the three is wanted (`ahead`, `jit` or `no`).
"""

from __future__ import annotations

from fairway.compiled.arrays import (
    BoolArray,
    BoolTable,
    FloatArray,
    FloatBlock,
    FloatBlocks,
    FloatTable,
    HashArray,
    IntArray,
    IntTable,
    ShortArray,
    ShortTable,
)
from fairway.compiled.marks import compiled, compiled_within, how

__all__ = [
    "BoolArray",
    "BoolTable",
    "FloatArray",
    "FloatBlock",
    "FloatBlocks",
    "FloatTable",
    "HashArray",
    "IntArray",
    "IntTable",
    "ShortArray",
    "ShortTable",
    "compiled",
    "compiled_within",
    "how",
]
