"""A process that is a client of Ray for another one, which is to outlive Ray's head: how it is started and ended.

Ray ends its clients with the raylet that they are connected to, and when its head is away for a minute. What they have
done for a process that must go on is in processes of their own therefore, which can be started again. Such a process
ends with its standard input. The first line that it prints is JSON: {"ok": true, …}, or "error", with what is wrong.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from fairway.errors import InputError

_START_SECONDS = 60.0
_ENDING_SECONDS = 15.0


def start_client(module: str, options: Mapping[str, Any], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the program of a module with these options, which writes what it has to say to the log."""
    return subprocess.Popen(
        [sys.executable, "-m", module, json.dumps(options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,  # Ctrl-C is for the process that needs it, which still does then
    )


def ready_client(process: subprocess.Popen[bytes], address: str, log: Path) -> dict[str, Any]:
    """Wait for the first line of such a process; raises `InputError` with what it says if it cannot be a client."""
    assert process.stdout is not None
    line, deadline = b"", time.monotonic() + _START_SECONDS
    waiting = select.poll()
    waiting.register(process.stdout, select.POLLIN)
    while not line.endswith(b"\n"):
        if not waiting.poll(1000 * max(0.0, deadline - time.monotonic())):
            raise InputError(f"address: Ray at {address} does not answer within {_START_SECONDS:g} s")
        content = os.read(process.stdout.fileno(), 4096)
        if not content:
            raise InputError(f"address: Ray at {address}: {_last_line(log)}")
        line += content
    said: dict[str, Any] = json.loads(line)
    if not said["ok"]:
        raise InputError(str(said["error"]))
    return said


def end_client(process: subprocess.Popen[bytes]) -> None:
    """End such a process."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"its client has ended without a word; see {path}"
