"""What GPUs measure of themselves, in Prometheus form. Whoever knows the names of NVIDIA's DCGM finds them here:

    DCGM_FI_DEV_GPU_UTIL              fairway_gpu_utilization_ratio (from 0 to 1)
    DCGM_FI_DEV_FB_USED               fairway_gpu_memory_used_bytes
    DCGM_FI_DEV_FB_TOTAL              fairway_gpu_memory_bytes
    DCGM_FI_DEV_POWER_USAGE           fairway_gpu_power_watts
    DCGM_FI_DEV_GPU_TEMP              fairway_gpu_temperature_celsius
    DCGM_FI_DEV_ECC_DBE_VOL_TOTAL     fairway_gpu_ecc_errors

A value that a device does not have makes no series; emulated accelerators make none at all. A MIG instance says its own
memory, and of the rest what the whole GPU measures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from fairway.live.backend.accelerators import Accelerator
from fairway.live.devices.gpus import DeviceReading

_LABELS = ("accelerator", "number", "device")
_READINGS: Mapping[str, tuple[str, Callable[[DeviceReading], float | None]]] = {
    "utilization_ratio": ("How busy a GPU is, from 0 to 1.", lambda reading: reading.utilization),
    "memory_used_bytes": ("Memory of a GPU that is in use.", lambda reading: reading.memory_used_bytes),
    "power_watts": ("What a GPU draws.", lambda reading: reading.power_watts),
    "temperature_celsius": ("How hot a GPU is.", lambda reading: reading.temperature_celsius),
    "ecc_errors": (
        "Errors of memory since the last reset that were not corrected.",
        lambda reading: reading.ecc_errors,
    ),
}


def gpu_metrics(devices: Mapping[tuple[str, int], Accelerator]) -> Iterator[Metric]:
    """Of the accelerators that are real, by worker."""
    real = {(kind, str(number), one.device or ""): one for (kind, number), one in devices.items() if not one.emulated}
    if not real:
        return
    healthy = GaugeMetricFamily("fairway_gpu_healthy", "0 if a GPU is sick and gets no work.", labels=_LABELS)
    size = GaugeMetricFamily("fairway_gpu_memory_bytes", "Memory of a GPU, where it has its own.", labels=_LABELS)
    for labels, one in real.items():
        healthy.add_metric(labels, one.sick is None)
        if one.memory_bytes is not None:
            size.add_metric(labels, one.memory_bytes)
    yield healthy
    yield size
    for name, (text, read) in _READINGS.items():
        family = GaugeMetricFamily(f"fairway_gpu_{name}", text, labels=_LABELS)
        for labels, one in real.items():
            value = None if one.reading is None else read(one.reading)
            if value is not None:
                family.add_metric(labels, value)
        yield family
