"""Looks at the GPUs of this machine, of every maker whose library is there, once or again and again."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from fairway.live.devices.amd import AmdSmi
from fairway.live.devices.gpus import Findings
from fairway.live.devices.nvml import Nvml


class GpuWatch:
    """The libraries, opened once; a context that lets go of them."""

    def __init__(self) -> None:
        self.nvml = Nvml()
        self.amd = AmdSmi()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def look(self) -> Findings:
        """All GPUs as they are now; remarks say why there are none."""
        ours, theirs = self.nvml.look(), self.amd.look()
        gpus = ours.gpus + theirs.gpus
        remarks = ours.remarks + theirs.remarks if not theirs.gpus else theirs.remarks
        return Findings(gpus, remarks, ours.driver)

    def close(self) -> None:
        """Let go of the libraries."""
        self.nvml.close()
        self.amd.close()


def found_gpus() -> Findings:
    """The GPUs of this machine, looked at once."""
    with GpuWatch() as watch:
        return watch.look()
