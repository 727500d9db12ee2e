"""Reads NVIDIA's GPUs through NVML, by the bindings of the extra `nvidia` (nvidia-ml-py, imported as `pynvml`).

The library is opened once and asked again and again. A question that a device does not answer leaves a gap; a device
that is lost, or that has to be reset, is sick and keeps its place. Errors that an application causes by itself (a bad
address, an abort) do not make a GPU sick: `APPLICATION_XIDS` are those, as NVIDIA's device plugin for Kubernetes skips
them, too (github.com/NVIDIA/k8s-device-plugin, `internal/rm/health.go`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fairway.live.devices.gpus import ComputeMode, DeviceReading, Findings, Gpu, MigInstance

APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109})
XIDS = {
    48: "a double-bit ECC error",
    63: "a page of memory was retired, or a row remapped",
    64: "a page of memory could not be retired, or a row not remapped",
    74: "an error of NVLink",
    79: "the GPU has fallen off the bus",
    94: "a contained ECC error",
    95: "an uncontained ECC error",
    119: "the GPU's system processor does not answer",
}
"""What the commonest numbers mean, after NVIDIA's list of XID errors (docs.nvidia.com/deploy/xid-errors)."""

_MOST_EVENTS = 1000
_NEEDS_EXTRA = "NVIDIA's library cannot be asked: install Fairway with its extra 'nvidia'"


class _LostError(Exception):
    """A device does not answer any more, for the reason that is its text."""


class Nvml:
    """The library, once it is open; `trouble` is why it is not."""

    def __init__(self) -> None:
        """Open it, if it is there."""
        self.trouble: str | None = None
        self.driver: str | None = None
        self._nvml: Any = None
        self._events: Any = None
        self._listened: set[str] = set()
        self._xids: dict[str, int] = {}
        self._known: dict[int, Gpu] = {}
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            self.trouble = _NEEDS_EXTRA
            return
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            self.trouble = f"no GPU of NVIDIA: {_words(error)}"
            return
        self._nvml = nvml
        self.driver = _text(self._optional(nvml.nvmlSystemGetDriverVersion))
        self._events = self._optional(nvml.nvmlEventSetCreate)

    def close(self) -> None:
        """Let go of the library."""
        if self._nvml is not None:
            nvml, self._nvml = self._nvml, None
            with suppress(nvml.NVMLError):
                if self._events is not None:
                    nvml.nvmlEventSetFree(self._events)
            with suppress(nvml.NVMLError):
                nvml.nvmlShutdown()

    def look(self) -> Findings:
        """All GPUs as they are now."""
        nvml = self._nvml
        if nvml is None:
            return Findings(remarks=(self.trouble or "NVIDIA's library was closed",))
        try:
            count = int(nvml.nvmlDeviceGetCount())
        except nvml.NVMLError as error:
            return Findings(remarks=(f"the GPUs of NVIDIA cannot be counted: {_words(error)}",), driver=self.driver)
        handles: dict[int, Any] = {}
        gpus: dict[int, Gpu] = {}
        remarks: list[str] = []
        for index in range(count):
            try:
                handles[index] = self._ask(nvml.nvmlDeviceGetHandleByIndex, index)
                gpus[index] = self._read(handles[index])
                self._known[index] = gpus[index]
            except _LostError as lost:
                handles.pop(index, None)
                if index in self._known:
                    gpus[index] = replace(self._known[index], sick=str(lost), reading=DeviceReading())
                else:
                    remarks.append(f"GPU {index} cannot be used: {lost}")
            except nvml.NVMLError as error:
                handles.pop(index, None)
                remarks.append(f"GPU {index} cannot be read: {_words(error)}")
        if not count:
            remarks.append("the driver of NVIDIA lists no GPU")
        links = self._links(handles, gpus)
        self._hear(handles, gpus)
        found = [replace(self._judged(gpu), links=links.get(index, ())) for index, gpu in gpus.items()]
        return Findings(tuple(found), tuple(remarks), self.driver)

    def _read(self, handle: Any) -> Gpu:
        nvml = self._nvml
        ask = self._optional
        memory = ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        mig = ask(nvml.nvmlDeviceGetMigMode, handle)
        cut = None if mig is None else mig[0] == nvml.NVML_DEVICE_MIG_ENABLE
        load = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
        power = ask(nvml.nvmlDeviceGetPowerUsage, handle)
        ecc = ask(
            nvml.nvmlDeviceGetTotalEccErrors, handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        )
        rows = ask(nvml.nvmlDeviceGetRemappedRows, handle)
        return Gpu(
            name=_text(self._ask(nvml.nvmlDeviceGetName, handle)) or "GPU",
            uuid=_text(self._ask(nvml.nvmlDeviceGetUUID, handle)) or "",
            memory_bytes=None if memory is None else int(memory.total),
            unified_memory=memory is None,
            mig=cut,
            instances=self._instances(handle) if cut else (),
            compute_mode=self._compute_mode(handle),
            sick=_sickness(rows),
            reading=DeviceReading(
                utilization=None if load is None else load.gpu / 100,
                memory_used_bytes=None if memory is None else int(memory.used),
                power_watts=None if power is None else power / 1000,
                temperature_celsius=ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
                ecc_errors=ecc,
            ),
        )

    def _instances(self, handle: Any) -> tuple[MigInstance, ...]:
        nvml = self._nvml
        found: list[MigInstance] = []
        for index in range(self._optional(nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
            part = self._optional(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
            if part is None:
                continue
            shape = self._optional(nvml.nvmlDeviceGetAttributes, part)
            memory = self._optional(nvml.nvmlDeviceGetMemoryInfo, part)
            size = int(memory.total) if memory is not None else None if shape is None else shape.memorySizeMB * 2**20
            slices = None if shape is None else int(shape.gpuInstanceSliceCount)
            name = _text(self._optional(nvml.nvmlDeviceGetName, part)) or ""
            found.append(MigInstance(_text(self._ask(nvml.nvmlDeviceGetUUID, part)) or "", _profile(name, slices, size),
                                     slices, size))  # fmt: skip
        return tuple(found)

    def _compute_mode(self, handle: Any) -> ComputeMode | None:
        nvml = self._nvml
        return {
            nvml.NVML_COMPUTEMODE_DEFAULT: ComputeMode.DEFAULT,
            nvml.NVML_COMPUTEMODE_PROHIBITED: ComputeMode.PROHIBITED,
            nvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: ComputeMode.EXCLUSIVE_PROCESS,
        }.get(self._optional(nvml.nvmlDeviceGetComputeMode, handle))

    def _links(self, handles: dict[int, Any], gpus: dict[int, Gpu]) -> dict[int, tuple[str, ...]]:
        """Which GPUs reach each other over NVLink, directly or through a switch."""
        nvml = self._nvml
        linked: dict[int, list[str]] = {}
        indices = [index for index in handles if index in gpus]
        for position, one in enumerate(indices):
            for other in indices[position + 1 :]:
                with suppress(_LostError):
                    status = self._optional(
                        nvml.nvmlDeviceGetP2PStatus, handles[one], handles[other], nvml.NVML_P2P_CAPS_INDEX_NVLINK
                    )
                    if status == nvml.NVML_P2P_STATUS_OK:
                        linked.setdefault(one, []).append(gpus[other].uuid)
                        linked.setdefault(other, []).append(gpus[one].uuid)
        return {index: tuple(peers) for index, peers in linked.items()}

    def _hear(self, handles: dict[int, Any], gpus: dict[int, Gpu]) -> None:
        """Take in what the driver has reported since the last look; a GPU that is new is listened to from now on."""
        nvml = self._nvml
        if self._events is None:
            return
        for index, handle in handles.items():
            if gpus[index].uuid not in self._listened:
                with suppress(nvml.NVMLError):
                    nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, self._events)
                    self._listened.add(gpus[index].uuid)
        for _ in range(_MOST_EVENTS):
            try:
                event = nvml.nvmlEventSetWait(self._events, 0)
                uuid = _text(nvml.nvmlDeviceGetUUID(event.device))
            except nvml.NVMLError:  # there is no other event, or the one that was came from a device that is gone
                return
            if uuid is not None and int(event.eventData) not in APPLICATION_XIDS:
                self._xids.setdefault(uuid, int(event.eventData))

    def _judged(self, gpu: Gpu) -> Gpu:
        number = self._xids.get(gpu.uuid)
        if gpu.sick is not None or number is None:
            return gpu
        return replace(gpu, sick=f"XID {number}: {XIDS.get(number, 'see the list of XID errors of NVIDIA')}")

    def _optional(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """The answer, or None where there is none; raises `_LostError` if the device is gone."""
        try:
            return self._ask(question, *arguments)
        except self._nvml.NVMLError:
            return None

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        nvml = self._nvml
        try:
            return question(*arguments)
        except nvml.NVMLError as error:
            if error.value == nvml.NVML_ERROR_GPU_IS_LOST:
                raise _LostError("the GPU is lost: it has fallen off the bus or is otherwise inaccessible") from None
            if error.value == nvml.NVML_ERROR_RESET_REQUIRED:
                raise _LostError("the GPU has to be reset before it can be used again") from None
            raise


def _sickness(rows: tuple[int, int, int, int] | None) -> str | None:
    if rows is not None and rows[3]:
        return "memory is broken: a row could not be remapped"
    return None


def _profile(name: str, slices: int | None, size: int | None) -> str:
    """The profile of an instance: the driver names it at the end, as in `NVIDIA A100-SXM4-40GB MIG 3g.20gb`."""
    _, _, profile = name.partition(" MIG ")
    if profile:
        return profile.strip().lower()
    gigabytes = "" if size is None else f".{round(size / 2**30)}gb"
    return f"{slices or '?'}g{gigabytes}"


def _text(value: str | bytes | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value


def _words(error: Exception) -> str:
    words = str(error)
    return words[:1].lower() + words[1:] if not words.startswith("NVML") else words
