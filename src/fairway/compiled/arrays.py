"""The arrays that compiled functions take, by what is in them and how many dimensions they have.

To mypy, a table is an array like any other; the number of dimensions is what `signatures` reads.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
ShortArray = npt.NDArray[np.int16]
BoolArray = npt.NDArray[np.bool_]
HashArray = npt.NDArray[np.uint64]

FloatTable = Annotated[npt.NDArray[np.float64], 2]
IntTable = Annotated[npt.NDArray[np.int64], 2]
ShortTable = Annotated[npt.NDArray[np.int16], 2]
BoolTable = Annotated[npt.NDArray[np.bool_], 2]

FloatBlock = Annotated[npt.NDArray[np.float64], 3]
FloatBlocks = Annotated[npt.NDArray[np.float64], 4]
