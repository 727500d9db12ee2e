"""What of the way to GPUs works on this machine: the driver, NVML, MIG, MPS, permissions, each in a line.

Nothing is changed: what a check cannot see without changing something, it does not say. A line is `ok`, `missing` (an
offer of the machine that is not there, which jobs can do without) or `broken` (which makes a GPU useless).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fairway.live.devices.gpus import ComputeMode, Findings, Gpu
from fairway.live.devices.look import GpuWatch

OLDEST_DRIVER = 450
"""The first branch of the driver with MIG (NVIDIA's MIG user guide, "Software prerequisites")."""

MPS_CONTROL = "nvidia-cuda-mps-control"
MPS_PIPES = "CUDA_MPS_PIPE_DIRECTORY"
_MPS_DEFAULT = "/tmp/nvidia-mps"


class Verdict(StrEnum):
    """How a check came out."""

    OK = "ok"
    MISSING = "missing"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, and what was seen."""

    name: str
    verdict: Verdict
    says: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where to look: the files of the system under `root`, and the environment."""

    environment: Mapping[str, str]
    root: Path = Path("/")
    user: int = 0

    @classmethod
    def here(cls) -> Surroundings:
        """This machine, as this process sees it."""
        return cls(os.environ, user=os.getuid())

    def at(self, path: str) -> Path:
        """A file of the system."""
        return self.root / path.lstrip("/")


def checked(around: Surroundings) -> tuple[list[Check], Findings]:
    """All checks, and the GPUs that were found on the way."""
    with GpuWatch() as watch:
        trouble = watch.nvml.trouble
        findings = watch.look()
    checks = [_kernel_module(around), _library(trouble, findings), *_driver(findings), *_gpus(findings)]
    if findings.gpus:
        checks += [*_mig(around, findings), *_device_files(around, findings), *_mps(around, findings)]
    return checks, findings


def _kernel_module(around: Surroundings) -> Check:
    version = around.at("/proc/driver/nvidia/version")
    try:
        line = version.read_text(errors="replace").splitlines()[0]
    except (OSError, IndexError):
        return Check("kernel module", Verdict.MISSING, f"no {version}: the kernel module of NVIDIA is not loaded")
    return Check("kernel module", Verdict.OK, line.strip())


def _library(trouble: str | None, findings: Findings) -> Check:
    if trouble is None:
        return Check("NVML", Verdict.OK, "the library answers")
    if findings.gpus:
        return Check("NVML", Verdict.MISSING, trouble)
    return Check("NVML", Verdict.BROKEN, trouble)


def _driver(findings: Findings) -> Iterator[Check]:
    if findings.driver is None:
        return
    branch = findings.driver.partition(".")[0]
    if branch.isdigit() and int(branch) < OLDEST_DRIVER:
        says = f"{findings.driver} is too old to cut GPUs: MIG needs {OLDEST_DRIVER} or later"
        yield Check("driver", Verdict.MISSING, says)
    else:
        yield Check("driver", Verdict.OK, findings.driver)


def _gpus(findings: Findings) -> Iterator[Check]:
    for number, gpu in enumerate(findings.gpus):
        name = f"GPU {number}"
        if gpu.sick is not None:
            yield Check(name, Verdict.BROKEN, f"{gpu.name}: {gpu.sick}")
        elif gpu.compute_mode is ComputeMode.PROHIBITED:
            yield Check(name, Verdict.BROKEN, f"{gpu.name}: its compute mode lets no process in (nvidia-smi -c 0)")
        else:
            memory = f"{gpu.memory_bytes / 2**30:.1f} GiB" if gpu.memory_bytes else "memory of the machine"
            yield Check(name, Verdict.OK, f"{gpu.name}, {memory}{_linked(gpu, findings)}")
    for remark in findings.remarks:
        if findings.gpus or findings.driver is not None:
            yield Check("GPUs", Verdict.BROKEN, remark)


def _linked(gpu: Gpu, findings: Findings) -> str:
    numbers = [str(number) for number, other in enumerate(findings.gpus) if other.uuid in gpu.links]
    return f", NVLink to {', '.join(numbers)}" if numbers else ""


def _mig(around: Surroundings, findings: Findings) -> Iterator[Check]:
    able = [number for number, gpu in enumerate(findings.gpus) if gpu.mig is not None]
    if not able:
        yield Check("MIG", Verdict.MISSING, "no GPU here can be cut")
        return
    for number in able:
        gpu = findings.gpus[number]
        if gpu.mig and gpu.instances:
            yield Check("MIG", Verdict.OK, f"GPU {number} is cut: {', '.join(one.profile for one in gpu.instances)}")
        elif gpu.mig:
            says = f"GPU {number} is in MIG mode and has no instance: nothing can run on it (nvidia-smi mig -cgi …)"
            yield Check("MIG", Verdict.BROKEN, says)
        else:
            yield Check("MIG", Verdict.OK, f"GPU {number} can be cut, and is whole")
    config = around.at("/proc/driver/nvidia/capabilities/mig/config")
    if around.user == 0 or os.access(config, os.R_OK):
        yield Check("MIG permissions", Verdict.OK, "this user may make instances")
    else:
        yield Check("MIG permissions", Verdict.MISSING, f"this user may not make instances: {config} cannot be read")


def _device_files(around: Surroundings, findings: Findings) -> Iterator[Check]:
    if findings.driver is None:
        return
    control = around.at("/dev/nvidiactl")
    if os.access(control, os.R_OK | os.W_OK):
        yield Check("device files", Verdict.OK, f"{control} can be opened")
    else:
        yield Check("device files", Verdict.BROKEN, f"{control} cannot be opened for reading and writing by this user")


def _mps(around: Surroundings, findings: Findings) -> Iterator[Check]:
    if findings.driver is None:
        return
    program = shutil.which(MPS_CONTROL, path=around.environment.get("PATH"))
    if program is None:
        yield Check("MPS", Verdict.MISSING, f"no {MPS_CONTROL} on PATH")
        return
    yield Check("MPS", Verdict.OK, program)
    pipes = Path(around.environment.get(MPS_PIPES) or around.at(_MPS_DEFAULT))
    control = pipes / "control"
    try:
        owner = control.stat().st_uid
    except OSError:
        yield Check("MPS daemon", Verdict.MISSING, f"none runs: there is no {control}")
        return
    if owner not in {around.user, 0}:
        yield Check("MPS daemon", Verdict.MISSING, f"{control} belongs to another user ({owner})")
    else:
        yield Check("MPS daemon", Verdict.OK, f"there is {control}")
