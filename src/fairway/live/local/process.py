"""Starts, stops and judges runs: the agent's side of a keeper.

`start` makes the directory of a run and sets a keeper on it; it may be called again for the same run, after a crash,
and the run is still run once only (the claim decides). `ask_to_stop` gives notice. `outcome_of` says how it ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from fairway.live.local.identity import ProcessIdentity, send_signal
from fairway.live.run_files import STOPPED, Exit, LeaseState, Order, Progress, RunFiles

FINISHED, STOPPED_EARLY, FAILED, FAILED_TO_START, LOST = "finished", "stopped", "failed", "failed-to-start", "lost"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    `finished`: the job is done. `stopped`: it was asked to stop and did; it can go on from its checkpoint. `failed`: it
    ended with `code`. `failed-to-start`: it never ran. `lost`: it was killed together with its keeper. `started` and
    `ended` are times of the machine's clock: None if its processes never ran, and if nobody saw them end.
    """

    kind: str
    code: int | None = None
    reason: str = ""
    killed: bool = False
    steps: int | None = None
    checkpoint_step: int | None = None
    started: float | None = None
    ended: float | None = None


def prepare(directory: Path, order: Order, lease: LeaseState) -> RunFiles:
    """Make the directory of a run; what is there already stays."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = RunFiles(directory)
    if files.order() is None:
        files.write_order(order)
    files.write_lease(lease)
    return files


def start(files: RunFiles) -> subprocess.Popen[bytes]:
    """Set a keeper on a run that was prepared; one that is kept already is left alone."""
    with (files.directory / "keeper.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "fairway.live.local.keeper", str(files.directory)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
        )


def keeper_of(files: RunFiles) -> ProcessIdentity | None:
    """Who keeps the run, dead or alive; None if nobody has claimed it yet."""
    claim = files.claimed_by()
    return ProcessIdentity.of(claim) if claim else None


def ask_to_stop(files: RunFiles, *, save: bool) -> None:
    """Give notice: with `save` after a checkpoint, otherwise at once. The keeper sees to the rest."""
    lease = files.lease() or LeaseState(0)
    wish = "save" if save and lease.stop != "now" else "now"
    if lease.stop != wish:
        files.write_lease(replace(lease, stop=wish))
    keeper = keeper_of(files)
    if keeper is not None:
        send_signal(keeper, signal.SIGUSR1)


def outcome_of(files: RunFiles, ranks: int) -> Outcome:
    """How a run ended whose keeper is gone."""
    told = files.progress(ranks)
    steps = sum(one.step for one in told) if told else None
    saved, started = checkpoint_step(told), files.started()
    ended = files.exit()
    if ended is None:
        if files.claimed_by() is None:
            said = _last_line(files.directory / "keeper.log")
            return Outcome(FAILED_TO_START, reason=f"the keeper did not start: {said}")
        why = "its keeper was killed, and the job with it"
        return Outcome(LOST, reason=why, steps=steps, checkpoint_step=saved, started=started)
    if ended.error is not None and ended.asked is None:
        return Outcome(FAILED_TO_START, reason=ended.error, ended=ended.time)
    code = ended.codes[ended.first] if ended.first is not None else 0
    left_early = told is not None and any(one.stopped for one in told)
    kind, reason = _judged(ended, code, left_early)
    if ended.codes and started is None:  # it ran, but there was no room on the disk to say since when
        started = ended.time
    return Outcome(kind, code, reason, ended.killed, steps, saved, started, ended.time)


def _judged(ended: Exit, code: int, left_early: bool) -> tuple[str, str]:
    if not ended.codes:
        return STOPPED_EARLY, "asked to stop before it had started"
    if ended.failed:
        return FAILED, _how(ended, code)
    if left_early and set(ended.codes) <= {0, STOPPED}:
        return STOPPED_EARLY, "saved a checkpoint and stopped"
    if ended.asked is not None and ended.terminated:
        return STOPPED_EARLY, "killed after its grace" if ended.killed else "terminated"
    return (FINISHED, "") if code == 0 else (FAILED, _how(ended, code))


def _how(ended: Exit, code: int) -> str:
    if code < 0:
        with suppress(ValueError):
            return f"rank {ended.first} was killed by {signal.Signals(-code).name}"
    return f"rank {ended.first} ended with exit code {code}"


def checkpoint_step(told: list[Progress] | None) -> int | None:
    """The last step that every rank has saved, summed over the ranks as the engine counts; None without one."""
    if not told or any(one.checkpoint_step is None for one in told):
        return None
    return min(one.checkpoint_step or 0 for one in told) * len(told)


def _last_line(path: Path) -> str:
    with suppress(OSError, IndexError):
        return path.read_text(errors="replace").strip().splitlines()[-1]
    return "it said nothing"


def reap(process: subprocess.Popen[bytes]) -> None:
    """Take note of a keeper's end, so that it does not stay a zombie."""
    process.poll()


def writable_directory(path: Path) -> str | None:
    """Make a directory; what is wrong with it, if it cannot be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return None if os.access(path, os.W_OK | os.X_OK) else f"{path}: no permission to write"
