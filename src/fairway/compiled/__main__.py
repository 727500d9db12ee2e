"""`python -m fairway.compiled` makes the library of compiled functions anew, as an installation does."""

from __future__ import annotations

import os
import platform

PROCESSORS = {"x86_64": "x86-64-v2"}
"""What the code is compiled for; elsewhere, for any processor of the architecture."""

if __name__ == "__main__":
    os.environ["NUMBA_CPU_NAME"] = PROCESSORS.get(platform.machine(), "generic")  # numba reads it when it is imported
    os.environ["NUMBA_CPU_FEATURES"] = ""
    os.environ["FAIRWAY_COMPILED"] = "jit"

    from fairway.compiled.ahead import build

    build()
