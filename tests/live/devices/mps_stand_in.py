"""A stand-in for `nvidia-cuda-mps-control`: it records what it is asked, and answers as NVIDIA's page on MPS says.

A daemon is a file `control` in the directory of its pipes. `MPS_FAULT` says what goes wrong: `refuses` to start, starts
and is `dead` at once, or `hangs`.
"""

from __future__ import annotations

from pathlib import Path

_PROGRAM = """#!/usr/bin/env python3
import json, os, sys, time
pipes, fault = os.environ["CUDA_MPS_PIPE_DIRECTORY"], os.environ.get("MPS_FAULT", "")
command = "" if "-d" in sys.argv else sys.stdin.readline().strip()
with open({record!r}, "a") as file:
    seen = {{name: value for name, value in os.environ.items() if name.startswith("CUDA_")}}
    print(json.dumps([sys.argv[1:], command, seen]), file=file)
control = os.path.join(pipes, "control")
if fault == "hangs":
    time.sleep(60)
if "-d" in sys.argv:
    if fault == "refuses":
        sys.exit("Failed to communicate with the GPU: no permission")
    if fault != "dead":
        open(control, "w").close()
elif not os.path.exists(control):
    sys.exit("Cannot find MPS control daemon process")
elif command == "quit":
    os.remove(control)
elif command == "get_server_list":
    print("4711")
"""


def put(directory: Path) -> Path:
    """Put it into a directory for the `PATH`; returns the file where it records."""
    record = directory / "record.jsonl"
    program = directory / "nvidia-cuda-mps-control"
    program.write_text(_PROGRAM.format(record=str(record)))
    program.chmod(0o755)
    return record
