"""Says why nothing happens while numerical code is compiled, which only happens where Fairway came without it.

The user before a terminal hears of it once; scripts and tests hear nothing.
"""

from __future__ import annotations

import sys
from typing import Any

from fairway.compiled.library import opened


def tell_of_compiling() -> None:
    """Have the user told, should anything be compiled from now on in this process."""
    if opened() is not None or not sys.stderr.isatty():
        return
    try:
        from numba.core import event
    except ImportError:  # nothing compiles then, which is warned of where it matters
        return

    class Listener(event.Listener):
        def on_start(self, _: Any) -> None:
            if not said:
                said.append(True)
                sys.stderr.write("fairway: compiling numerical code, once after installation; about 20 s\n")
                sys.stderr.flush()

        def on_end(self, _: Any) -> None:
            pass

    said: list[bool] = []
    event.register("numba:compile", Listener())
