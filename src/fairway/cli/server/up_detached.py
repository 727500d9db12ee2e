"""What `fairway up --detach` does: starts the same command in the background, and waits until that answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import typer

from fairway.cli.server.presence import process_in
from fairway.errors import FairwayError, InputError

_LOG_FILE = "up.log"


def start_detached(directory: Path) -> None:
    """Start this very command without `--detach`; its messages go to a file, and here until it answers."""
    running = process_in(directory)
    if running is not None:
        raise InputError(f"{directory}: Fairway runs there already, as process {running}; 'fairway down' stops it")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = [word for word in sys.argv[1:] if word not in {"--detach", "--wait"}]
    log = directory / _LOG_FILE
    address = directory / "address"
    address.unlink(missing_ok=True)  # of one that was killed
    with log.open("wb") as messages:
        process = subprocess.Popen(
            [sys.executable, "-m", "fairway.cli.main", *words],
            stdin=subprocess.DEVNULL,
            stdout=messages,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    while not address.exists():
        try:
            process.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            continue
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["it ended without a word"]
        said = lines[-1].removeprefix("fairway: ")
        raise InputError(said) if process.returncode == 2 else FairwayError(said)
    typer.echo(f"Fairway answers at {address.read_text(encoding='utf-8').strip()}; its messages go to {log}")
    typer.echo("'fairway down' stops it")
