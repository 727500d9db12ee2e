"""Judges how a run ended, from what its keeper and its job have written down."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fairway.live.backend.channel import STOPPED, RankProgress
from fairway.live.backend.status import OutcomeKind, RunOutcome
from fairway.live.local.agent.keepers import keeper_of
from fairway.live.local.identity import boot
from fairway.live.local.run_files import RunExit, RunFiles
from fairway.live.untrusted_file import UntrustedFileError, read_regular


def outcome_of(files: RunFiles, ranks: Sequence[int]) -> RunOutcome:
    """How a run ended whose keeper is gone."""
    try:
        told = files.progress(ranks)
    except UntrustedFileError as error:
        return unfit(files, error)
    steps = sum(one.step for one in told) if told else None
    saved, started = checkpoint_step(told), files.started()
    ended = files.exit()
    if ended is None:
        keeper = keeper_of(files)
        if not files.directory.is_dir():
            return RunOutcome(OutcomeKind.FAILED, reason="the directory of its run was removed", started=started)
        if keeper is None:
            said = _last_line(files.directory / "keeper.log")
            return RunOutcome(OutcomeKind.FAILED_TO_START, reason=f"the keeper did not start: {said}")
        kind, why = OutcomeKind.LOST, "the machine was restarted, and the job with it"
        if keeper.boot == boot():  # whoever killed it cannot be told from the job, which could go on so for ever
            kind, why = OutcomeKind.FAILED, "its keeper was killed, and the job with it"
        return RunOutcome(kind, reason=why, steps=steps, checkpoint_step=saved, started=started)
    if ended.error is not None and ended.asked is None:
        return RunOutcome(OutcomeKind.FAILED_TO_START, reason=ended.error, ended=ended.time)
    code = ended.codes[ended.first] if ended.first is not None else 0
    left_early = told is not None and any(one.stopped for one in told)
    kind, reason = _judged(ended, code, left_early, ranks)
    if ended.codes and started is None:  # it ran, but there was no room on the disk to say since when
        started = ended.time
    return RunOutcome(kind, code, reason, ended.killed, steps, saved, started, ended.time)


def unfit(files: RunFiles, error: UntrustedFileError) -> RunOutcome:
    """How a run ended that has written what cannot be read: its job has failed, whatever its exit code."""
    ended = files.exit()
    reason = f"{error}; the job has written it, and was ended for it"
    return RunOutcome(
        OutcomeKind.FAILED,
        reason=reason,
        killed=ended is not None and ended.killed,
        started=files.started(),
        ended=None if ended is None else ended.time,
    )


def _judged(ended: RunExit, code: int, left_early: bool, ranks: Sequence[int]) -> tuple[OutcomeKind, str]:
    if not ended.codes:
        return OutcomeKind.STOPPED, "asked to stop before it had started"
    if ended.failed:
        return OutcomeKind.FAILED, _how(ended, code, ranks)
    if left_early and set(ended.codes) <= {0, STOPPED}:
        return OutcomeKind.STOPPED, "saved a checkpoint and stopped"
    if ended.asked is not None and ended.terminated:
        return OutcomeKind.STOPPED, "killed after its grace" if ended.killed else "terminated"
    return (OutcomeKind.FINISHED, "") if code == 0 else (OutcomeKind.FAILED, _how(ended, code, ranks))


def _how(ended: RunExit, code: int, ranks: Sequence[int]) -> str:
    rank = ended.first if ended.first is None or ended.first >= len(ranks) else ranks[ended.first]
    if ended.out_of_memory:
        return f"rank {rank} ended after the job had needed more memory than it asked for (resources.memory)"
    if code < 0:
        with suppress(ValueError):
            return f"rank {rank} was killed by {signal.Signals(-code).name}"
    return f"rank {rank} ended with exit code {code}"


def checkpoint_step(told: list[RankProgress] | None) -> int | None:
    """The last step that every rank has saved, summed over the ranks as the engine counts; None without one."""
    if not told or any(one.checkpoint_step is None for one in told):
        return None
    return min(one.checkpoint_step or 0 for one in told) * len(told)


def _last_line(path: Path) -> str:
    with suppress(OSError, IndexError, UntrustedFileError):
        return (read_regular(path) or b"").decode(errors="replace").strip().splitlines()[-1]
    return "it said nothing"
