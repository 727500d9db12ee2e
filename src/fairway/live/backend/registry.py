"""Backends by name: the one place that knows what is behind the seam, as paths that are imported when needed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol

from fairway.errors import InputError
from fairway.live.backend.protocol import Backend
from fairway.options import nearest

BACKENDS = {
    "local": "fairway.live.local.backend:LocalBackend",
}
"""Where each backend is found: `module:class`."""


class MakeBackend(Protocol):
    """Makes a backend that keeps its files in a directory.

    `emulate` declares emulated accelerators as in `v100=2,k80=1`; without it they are found. `time_scale` is how many
    times as fast as real ones the emulated run.
    """

    def __call__(self, directory: Path, *, emulate: str | None, time_scale: float) -> Backend:
        """The backend; nothing is started yet."""
        ...


def backend_named(name: str) -> MakeBackend:
    """What makes the backend of this name."""
    if name not in BACKENDS:
        raise InputError(f"backend '{name}' is not known{nearest(name, BACKENDS)}; known: {', '.join(BACKENDS)}")
    module, _, kind = BACKENDS[name].partition(":")
    made: MakeBackend = getattr(import_module(module), kind)
    return made
