"""A PostgreSQL server of the tests' own, on a free port, in a temporary directory."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg


def programs() -> Path | None:
    """Where the server's programs are; None if there is no server on this machine."""
    found = shutil.which("initdb")
    if found and (Path(found).resolve().parent / "postgres").exists():
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parents[1].name))
    return versions[-1].parent if versions else None


def _user() -> dict[str, Any]:
    """As whom to run it: PostgreSQL refuses to be root."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    name = "postgres" if "postgres" in names else "nobody"
    return {"user": name, "group": pwd.getpwnam(name).pw_gid, "extra_groups": []}


@contextmanager
def running_server(binaries: Path) -> Iterator[str]:
    """The address of a server that runs meanwhile, without a database name."""
    # Not below pytest's directories, which nobody but their owner may enter.
    home = Path(tempfile.mkdtemp(prefix="fairway-postgresql-"))
    user = _user()
    if user:
        shutil.chown(home, user["user"], user["group"])
    process = None
    try:
        data = home / "data"
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", "fairway", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
            check=True, capture_output=True, cwd=home, **user,
        )  # fmt: skip
        with (data / "postgresql.conf").open("a") as settings:
            settings.write("fsync = off\n")  # only those tests wait for the disk that measure how long it takes
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(
                [binaries / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", home],
                stdout=log, stderr=log, cwd=home, **user,
            )  # fmt: skip
        address = f"postgresql://fairway@127.0.0.1:{port}"
        _wait(address, process, home / "log")
        yield address
    finally:
        if process is not None:
            process.send_signal(signal.SIGQUIT)  # at once: nothing of it is needed any more
            process.wait(30)
        shutil.rmtree(home, ignore_errors=True)


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(f"{address}/postgres").close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL does not start: {log.read_text()}") from None
            time.sleep(0.05)
        else:
            return
