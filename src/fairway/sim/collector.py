"""Lets a simulation run without Python's collector of cycles.

What happens in a simulation makes objects by the million and lets go of them one by one. They do not refer to each
other in circles, so the collector would look at all that is held, again and again, and find nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Nothing is collected meanwhile; objects are still freed when nothing refers to them.

    Around a whole function, what that had made is freed before the collector is back, which need not look at it then.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
