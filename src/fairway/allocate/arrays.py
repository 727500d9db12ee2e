"""The array types of the allocation floor."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
ShortArray = npt.NDArray[np.int16]
"""Positions of accelerator types: a quarter of the memory to walk through, and types are never many."""

BoolArray = npt.NDArray[np.bool_]
