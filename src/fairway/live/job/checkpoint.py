"""Keeps the checkpoints of a job: one file per rank and step, there whole or not at all.

The step is part of the file's name, so that a state and its step can never disagree. A gang goes on from the last step
that all of its ranks have saved; the checkpoint before is kept for the case that one was killed while saving. A state
of plain numpy arrays becomes an .npz file, one with torch tensors is saved by torch (if the job has imported it), and
anything else is pickled. A checkpoint directory is as trusted as the job itself.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairway.live.durable_file import replacing

_NAME = re.compile(r"step-(\d+)\.rank-(\d+)\.(npz|torch|pickle|saved)")
_KEPT = 2


class Checkpoints:
    """The checkpoints of one rank in the directory of its job."""

    def __init__(self, directory: Path, rank: int = 0, world_size: int = 1) -> None:
        self.directory = directory
        self._rank, self._world_size = rank, world_size

    def latest(self) -> int | None:
        """The last step that every rank has saved; None without one."""
        steps = [set(self._files(rank)) for rank in range(self._world_size)]
        return max(set.intersection(*steps), default=None)

    def load(self, step: int) -> Any:
        """The state that this rank saved after this step; None if the job kept it elsewhere."""
        path = self._files(self._rank)[step]
        match path.suffix:
            case ".npz":
                import numpy as np  # noqa: PLC0415 - only a job that has arrays needs it

                with np.load(path, allow_pickle=False) as arrays:
                    return dict(arrays)
            case ".torch":
                import torch  # noqa: PLC0415 - only a job that has tensors needs it

                return torch.load(path, map_location="cpu", weights_only=False)
            case ".pickle":
                with path.open("rb") as file:
                    return pickle.load(file)
        return None

    def save(self, step: int, state: Any) -> None:
        """Save the state after a step; None says that the job has saved it itself, and only the step is noted."""
        self.directory.mkdir(parents=True, exist_ok=True)
        kind = _kind(state)
        with replacing(self.directory / f"step-{step:012d}.rank-{self._rank}.{kind}") as part:
            _write(part, kind, state)
        files = self._files(self._rank)
        common = self.latest()
        for old in sorted(files)[:-_KEPT]:
            if common is None or old < common:  # never the one that the gang would go on from
                with suppress(OSError):
                    files[old].unlink()

    def _files(self, rank: int) -> dict[int, Path]:
        try:
            names = os.listdir(self.directory)  # noqa: PTH208 - names are all that is needed
        except OSError:
            return {}
        found = (_NAME.fullmatch(name) for name in names)
        return {int(match[1]): self.directory / match[0] for match in found if match and int(match[2]) == rank}


def _kind(state: Any) -> str:
    if state is None:
        return "saved"
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(state, dict) and state:
        plain = all(isinstance(name, str) and name.isidentifier() and name != "file" for name in state)
        if plain and all(type(value) is numpy.ndarray and not value.dtype.hasobject for value in state.values()):
            return "npz"
    return "torch" if "torch" in sys.modules else "pickle"


def _write(path: Path, kind: str, state: Any) -> None:
    with path.open("wb") as file:
        if kind == "npz":
            sys.modules["numpy"].savez(file, **state)
        elif kind == "torch":
            sys.modules["torch"].save(state, file)
        elif kind == "pickle":
            pickle.dump(state, file, protocol=pickle.HIGHEST_PROTOCOL)
