"""Backends by name: the one place that knows what is behind the seam, as paths that are imported when needed.

Beside ours, one may be a class of any module, `module:Class[:option,...]`, or come with an installed package
(`fairway.parts`); its options are the parameters that every backend need not have.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from fairway.live.backend.protocol import Backend
from fairway.parts import Parts

BACKENDS = {
    "local": "fairway.live.local.backend:LocalBackend",
    "ray": "fairway.live.ray.backend:RayBackend",
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


BACKEND_PARTS: Parts[Backend] = Parts(
    "backend", "fairway.backends", Backend, BACKENDS, besides=("directory", "emulate", "time_scale")
)


def backend_named(name: str) -> MakeBackend:
    """What makes the backend of this name, with its options."""
    return BACKEND_PARTS.maker(name)
