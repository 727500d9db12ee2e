"""Says why nothing happens while numerical code is compiled, which is done once after installation.

Compiled code is kept beside the package, or in the user's cache; numba says when something has to be compiled after
all. The user before a terminal hears of it once; scripts and tests hear nothing.
"""

from __future__ import annotations

import sys
from typing import Any


def tell_of_compiling() -> None:
    """Have the user told, should anything be compiled from now on in this process."""
    if not sys.stderr.isatty():
        return
    from numba.core import event

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
