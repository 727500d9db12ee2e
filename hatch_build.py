"""Compiles the numerical loops when Fairway is built, into a wheel or into the source of an editable installation.

`python -m fairway.compiled` does the work. Where it cannot, as without a version of numba for this Python, the wheel is
built without compiled code, says so, and numba compiles the loops when they are first called, if it is there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_COMPILERS = ("cc", "gcc", "clang")


class CompiledLoops(BuildHookInterface[Any]):
    """Makes `kernels.so` and its manifest, and gives the wheel the name of the platform that they are for."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What compiling needs: the loops can be imported where everything else can."""
        linker = [] if os.environ.get("CC") or any(map(shutil.which, _COMPILERS)) else ["ziglang>=0.13"]
        return [*self.metadata.core.dependencies, "numba>=0.60", *linker]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - as hatch calls it
        """Compile before files are collected."""
        source = Path(self.root, "src")
        library = source / "fairway" / "compiled" / "kernels.so"
        # What compiles must import this source: a path of the environment would not do, since where pip builds apart it
        # takes paths out again.
        code = f"""
import runpy, sys
sys.path.insert(0, {str(source)!r})
runpy.run_module("fairway.compiled", run_name="__main__")
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no reason was given"]
            self.app.display_warning(f"built without compiled code, so numba is needed at run time: {lines[-1]}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform(library)}"
        build_data["artifacts"] += ["src/fairway/compiled/kernels.so", "src/fairway/compiled/kernels.json"]


def _platform(library: Path) -> str:
    """The platform as installers know it; on Linux, from the youngest part of the C library that is asked for."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    versions = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", library.read_bytes())]
    if platform.startswith("linux_") and versions:
        return platform.replace("linux_", f"manylinux_2_{max(17, *versions)}_")
    return platform
