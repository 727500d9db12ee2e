"""Builds the virtual environment of a job, as the job's user and before its processes start.

    python -m fairway.live.local.environment_build REQUIREMENTS CACHE LINK

An environment is built once for what is in the file, for one Python, and then used by all jobs that ask for the same; a
job that needs one while another builds it waits for that. One that was not built to its end is built anew. `LINK` is
made to point at it. Packages come from where `uv` gets them; files that the requirements include are not looked at.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

_READY = ".fairway-ready"


def uv_program() -> str | None:
    """Where `uv` is: on the path, or beside this Python."""
    beside = Path(sys.executable).parent / "uv"
    return shutil.which("uv") or (str(beside) if os.access(beside, os.X_OK) else None)


def build(requirements: Path, cache: Path, link: Path) -> int:
    """Have the environment, and make the link point at it; an exit code."""
    try:
        content = requirements.read_bytes()
    except OSError as error:
        print(f"{requirements}: {error.strerror}")
        return 1
    digest = hashlib.sha256(b"\0".join([sys.version.encode(), sys.executable.encode(), content])).hexdigest()[:24]
    made = cache / digest
    with (cache / f"{digest}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / _READY).exists():
            shutil.rmtree(made, ignore_errors=True)
            code = _built(requirements, made)
            if code:
                shutil.rmtree(made, ignore_errors=True)
                return code
            (made / _READY).touch()
    link.unlink(missing_ok=True)
    link.symlink_to(made)
    return 0


def _built(requirements: Path, made: Path) -> int:
    uv = uv_program()
    if uv is None:
        print("the program 'uv' is not on this machine")
        return 1
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, str(made)],
        [uv, "pip", "install", "--quiet", "--python", str(made / "bin" / "python"), "-r", str(requirements)],
    ):
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(build(*map(Path, sys.argv[1:4])))
