"""Reads AMD's GPUs through its own library, where `amdsmi` is installed: it comes with ROCm.

A GPU is known by its number, which is what `CUDA_VISIBLE_DEVICES` means on these devices, too.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fairway.live.devices.gpus import DeviceReading, Findings, Gpu


class AmdSmi:
    """The library, once it is open; without it there are no GPUs of this maker, and nothing is said of them."""

    def __init__(self) -> None:
        """Open it, if it is there."""
        self.trouble: str | None = None
        self._library: Any = None
        try:
            library = importlib.import_module("amdsmi")
        except (ImportError, OSError, KeyError):  # it looks for the shared library of ROCm as it is imported
            return
        try:
            library.amdsmi_init()
        except library.AmdSmiException as error:
            self.trouble = f"no GPU of AMD: {error}"
            return
        self._library = library

    def close(self) -> None:
        """Let go of the library."""
        if self._library is not None:
            library, self._library = self._library, None
            with suppress(library.AmdSmiException):
                library.amdsmi_shut_down()

    def look(self) -> Findings:
        """All GPUs as they are now."""
        if self._library is None:
            return Findings(remarks=() if self.trouble is None else (self.trouble,))
        try:
            handles = self._library.amdsmi_get_processor_handles()
        except self._library.AmdSmiException as error:
            return Findings(remarks=(f"the GPUs of AMD cannot be counted: {error}",))
        return Findings(tuple(self._read(number, handle) for number, handle in enumerate(handles)))

    def _read(self, number: int, handle: Any) -> Gpu:
        smi, ask = self._library, self._optional
        chip = ask(smi.amdsmi_get_gpu_asic_info, handle) or {}
        load = ask(smi.amdsmi_get_gpu_activity, handle) or {}
        power = ask(smi.amdsmi_get_power_info, handle) or {}
        ecc = ask(smi.amdsmi_get_gpu_total_ecc_count, handle) or {}
        total = ask(smi.amdsmi_get_gpu_memory_total, handle, smi.AmdSmiMemoryType.VRAM)
        used = ask(smi.amdsmi_get_gpu_memory_usage, handle, smi.AmdSmiMemoryType.VRAM)
        busy = _number(load.get("gfx_activity"))
        errors = _number(ecc.get("uncorrectable_count"))
        return Gpu(
            name=str(chip.get("market_name") or "AMD GPU"),
            uuid=str(number),
            memory_bytes=total,
            unified_memory=not total,
            reading=DeviceReading(
                utilization=None if busy is None else busy / 100,
                memory_used_bytes=used,
                power_watts=_number(power.get("current_socket_power"), power.get("average_socket_power")),
                ecc_errors=None if errors is None else int(errors),
            ),
        )

    def _optional(self, question: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return question(*arguments)
        except self._library.AmdSmiException:
            return None


def _number(*values: Any) -> float | None:
    """The first of them that is a number: the library says "N/A" for what a chip does not have."""
    return next((float(value) for value in values if isinstance(value, int | float)), None)
