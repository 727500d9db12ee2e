"""A machine with GPUs that are not there: the real nvidia-ml-py on the library of `nvml_stand_in.c`.

The library is compiled once and found through `LD_LIBRARY_PATH`, so what asks it has to be a process of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("nvml_stand_in.c")

A100 = (
    "gpu|name=NVIDIA A100-SXM4-40GB|uuid=GPU-a100|memory=40960|used=2048|mig=1|util=35|power=98500|ecc=0|mode=0|rows=0"
)
A100_PARTS = [
    "mig|name=NVIDIA A100-SXM4-40GB MIG 3g.20gb|uuid=MIG-three|slices=3|memory=20096",
    "mig|name=NVIDIA A100-SXM4-40GB MIG 2g.10gb|uuid=MIG-two|slices=2|memory=9856",
    "mig|uuid=MIG-one|slices=1|memory=4864",
]
H100 = (
    "gpu|name=NVIDIA H100 80GB HBM3|uuid=GPU-h100-{0}|memory=81559|used=1024|mig=0|util=90|power=612000|temperature=64"
    "|ecc=0|mode=3|rows=0|links={1}"
)
L4 = "gpu|name=NVIDIA L4|uuid=GPU-l4|memory=23034|used=0|util=0|power=16200|temperature=41|ecc=0|mode=0"
GB10 = "gpu|name=NVIDIA GB10|uuid=GPU-gb10|util=12|mode=0"


@dataclass(frozen=True)
class Machine:
    """`file` says what the stand-in for the driver has."""

    library: Path
    file: Path

    def has(self, *lines: str, driver: str | None = "580.65.06") -> None:
        written = self.file.with_suffix(".new")
        written.write_text("\n".join([*([f"driver|version={driver}"] if driver else []), *lines]) + "\n")
        written.replace(self.file)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "COLUMNS": "160", "LD_LIBRARY_PATH": str(self.library), "NVML_STAND_IN": str(self.file)}

    def python(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run([sys.executable, "-c", program, *arguments])

    def fairway(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run([sys.executable, "-m", "fairway.cli.main", *words])

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )


def machine_in(directory: Path) -> Machine:
    """Compile the library; skips where there is no compiler."""
    pytest.importorskip("pynvml", reason="the extra 'nvidia' is not installed")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler to make the stand-in for NVML with")
    library = directory / "library"
    library.mkdir()
    subprocess.run(
        [
            compiler,
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Werror",
            "-o",
            str(library / "libnvidia-ml.so.1"),
            str(SOURCE),
        ],
        check=True,
    )
    return Machine(library, directory / "gpus")
