"""Whether the image of a job can be run here: podman is on this machine, and has the image or can fetch it.

Nothing is fetched yet: of an image that is not here, only its manifest is asked for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fairway.errors import InputError
from fairway.live.backend.commands import JobProgram
from fairway.live.local.container import rights_of
from fairway.live.local.job_user import JobUser

_INITS = (
    "/usr/libexec/podman/catatonit",
    "/usr/local/libexec/podman/catatonit",
    "/usr/local/lib/podman/catatonit",
    "/usr/lib/podman/catatonit",
    "/usr/bin/catatonit",
    "/usr/local/bin/catatonit",
)
"""Where podman looks for the first process of a container, without which a plain command would not hear of SIGTERM."""

_ASK_SECONDS = 10.0
_LONGEST_REASON = 300


def refuse_container(program: JobProgram) -> None:
    """Refuse an image that cannot be run on this machine, or cannot be had."""
    assert program.image is not None
    for name in ("podman", "crun"):
        if shutil.which(name) is None:
            raise InputError(
                f"environment.image: given, but the program '{name}' is not on this machine; install it, as by "
                f"'apt install {name}', or give a virtual environment, as in {{uv: requirements.txt}}"
            )
    if not any(os.access(path, os.X_OK) for path in _INITS):
        raise InputError(
            "environment.image: given, but the program 'catatonit' that podman begins containers with is not on this "
            "machine; install it, as by 'apt install catatonit'"
        )
    for where, directory in (("workdir", program.workdir), ("checkpoint.directory", program.checkpoint_directory)):
        if directory is not None and Path(directory) == Path("/"):
            raise InputError(f"{where}: '/' given, which would hide all of the image; give a directory below it")
    user = None if program.user is None else JobUser.named(program.user)
    code, said = _asked(["podman", "image", "exists", program.image], user)
    if code == 0:
        return
    if code != 1:
        raise InputError(f"environment.image: podman cannot look for images on this machine: {said}")
    registry, slash, _ = program.image.partition("/")
    if not slash or not ({".", ":"} & set(registry)):
        raise InputError(
            f"environment.image: '{program.image}' given, but there is no such image on this machine; give its whole "
            "name with the registry, as in 'docker.io/library/python:3.12', or have it here by 'podman build'"
        )
    code, said = _asked(["podman", "manifest", "inspect", program.image], user)
    if code:
        raise InputError(
            f"environment.image: '{program.image}' is not on this machine and cannot be had: {said}; correct the name, "
            "or have it here by 'podman load'"
        )


def _asked(command: Sequence[str], user: JobUser | None) -> tuple[int, str]:
    """What podman answers: its exit code, and the last line that it has said."""
    surroundings = dict(os.environ) if user is None else user.environment(os.environ)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
            timeout=_ASK_SECONDS, env=surroundings, cwd="/",
            **rights_of(user),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 125, f"no answer within {_ASK_SECONDS:g} s"
    except OSError as error:
        return 125, str(error.strerror or error)
    lines = done.stderr.strip().splitlines()
    said = lines[-1].removeprefix("Error: ") if lines else "it said nothing"
    return done.returncode, said[:_LONGEST_REASON]
