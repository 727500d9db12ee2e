"""Looks after the runs of this machine: carries out the commands of a controller, whatever is killed in between.

Every command can be given twice, and one about an older lease than the job holds changes nothing. What is wanted is
written down before it is done; what was done is read from the directories of the runs. No worker is held by two leases
at once: a run waits until the processes of the former holders are gone. `tick` is to be called when something may have
happened, and every now and then.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairway.errors import InputError
from fairway.live.local import process
from fairway.live.local.accelerators import Accelerator
from fairway.live.local.agent_messages import Drain, End, Extend, Forget, HandOver, RefusedError, Retire, Start
from fairway.live.local.agent_state import ENDED, ENDING, RUNNING, STARTING, WAITING, AgentState, Run
from fairway.live.local.environment import common_environment, rank_environments
from fairway.live.local.identity import ProcessIdentity, kill_remains
from fairway.live.run_files import LeaseState, Order, Progress, RunFiles

_LOOK_SECONDS = 0.25
"""How often a run is looked at closely; that it ended is seen at once."""

_LOG = logging.getLogger(__name__)

Answer = dict[str, Any]


@dataclass(slots=True)
class _Watch:
    """What the agent knows of a run that it need not remember."""

    files: RunFiles
    spawned: subprocess.Popen[bytes] | None = None
    keeper: ProcessIdentity | None = None
    looked: float = 0.0
    steps: int | None = None
    checkpoint_step: int | None = None
    steps_per_second: float | None = None
    progress_time: float = 0.0


class Supervisor:
    """The runs of one machine. `emit` gets the events; `watch` is told of processes whose end should lead to a tick."""

    def __init__(
        self,
        directory: Path,
        accelerators: Sequence[Accelerator],
        *,
        emit: Callable[[Answer], None],
        watch: Callable[[ProcessIdentity], None] = lambda _: None,
        time_scale: float = 1.0,
        outside: Mapping[str, str] = os.environ,
    ) -> None:
        self._directory = directory
        self._accelerators = {(one.type, one.number): one for one in accelerators}
        self._emit, self._watch_process = emit, watch
        self._time_scale = time_scale
        self._outside = dict(outside)
        self._path = directory / "state.json"
        for part in ("runs", "logs", "checkpoints"):
            (directory / part).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.state = AgentState.load(self._path)
        self._watches: dict[str, _Watch] = {}
        self._gone: list[subprocess.Popen[bytes]] = []
        self._recover()

    # Commands

    def start(self, command: Start) -> Answer:
        """Accept a run; see `Start`."""
        known = self.state.find(command.lease, command.job)
        if known is not None:
            return {"result": "known", "run": self._described(known)}
        newest = self.state.newest_lease(command.job)
        if command.lease <= newest:
            return {"result": "stale", "newest": newest}
        if self.state.draining:
            raise RefusedError("draining", "this agent is draining and takes no new runs")
        if command.expires and not command.preemptible:
            raise InputError("start.expires: true given for a job that is not preemptible; its lease must not end")
        accelerators = self._accelerators_of(command)
        for holder in self._holders(command.lease, command.job, command.accelerator, command.workers):
            if holder.state not in {ENDING, WAITING}:
                raise RefusedError(
                    "busy", f"job '{holder.job}' runs under lease {holder.lease} and was not asked to end; end it first"
                )
        run = self._prepared(command, accelerators)
        self.state.runs.append(run)
        self._save()
        self._launch_those_that_can()
        return {"result": "accepted", "run": self._described(run)}

    def end(self, command: End) -> Answer:
        """Ask a run to stop; see `End`."""
        run = self.state.find(command.lease, command.job)
        if run is None:
            return {"result": "stale", "newest": self.state.newest_lease(command.job)}
        if not run.active:
            return {"result": "known", "run": self._described(run)}
        if command.save and not run.preemptible:
            raise RefusedError("not-preemptible", f"job '{run.job}' is not preemptible; end it without saving")
        if run.state == WAITING:
            self._conclude(run, process.Outcome(process.STOPPED_EARLY, reason="asked to stop before it had started"))
        else:
            if run.state != ENDING:
                run.state = ENDING
                self._save()
            process.ask_to_stop(self._watch(run).files, save=command.save)
        return {"result": "accepted", "run": self._described(run)}

    def extend(self, command: Extend) -> Answer:
        """Let leases run on."""
        wanted = None if command.leases is None else set(command.leases)
        extended = [
            run
            for run in self.state.runs
            if run.state not in {ENDING, ENDED} and (wanted is None or run.lease in wanted)
        ]
        for run in extended:
            run.until = command.until
            self._rewrite(run, until=command.until)
        if extended:
            self._save()
        return {"result": "accepted", "leases": sorted({run.lease for run in extended})}

    def hand_over(self, command: HandOver) -> Answer:
        """Let a run go on under a new lease."""
        if (known := self.state.find(command.lease, command.job)) is not None:
            if known.active:  # an agent that was killed in between may not have told the job
                self._go_on_under(known, command)
            return {"result": "known", "run": self._described(known)}
        run = self.state.find(command.old, command.job)
        newest = self.state.newest_lease(command.job)
        if run is None or not run.active or command.lease <= newest:
            return {"result": "stale", "newest": newest}
        if run.state == ENDING:
            raise RefusedError("ending", f"job '{run.job}' was asked to end under lease {run.lease}; start it anew")
        run.lease, run.until = command.lease, command.until
        self._save()
        self._go_on_under(run, command)
        return {"result": "accepted", "run": self._described(run)}

    def _go_on_under(self, run: Run, command: HandOver) -> None:
        changes: dict[str, Any] = {"lease": command.lease, "until": command.until}
        if command.steps_per_second is not None:
            changes["pace"] = self._pace(run, command.steps_per_second)
        self._rewrite(run, **changes)

    def forget(self, command: Forget) -> Answer:
        """Let go of a run that has ended."""
        run = self.state.find(command.lease, command.job)
        if run is None:
            return {"result": "known"}
        if run.active:
            raise RefusedError("active", f"job '{run.job}' has not ended under lease {run.lease}; end it first")
        self.state.floors[run.job] = self.state.newest_lease(run.job)
        self.state.runs.remove(run)
        self._save()
        shutil.rmtree(self._directory / "runs" / run.directory, ignore_errors=True)
        return {"result": "accepted"}

    def retire(self, command: Retire) -> Answer:
        """Let go of a job altogether."""
        if any(run.active for run in self.state.runs if run.job == command.job):
            raise RefusedError("active", f"job '{command.job}' still runs; end it first")
        for run in [run for run in self.state.runs if run.job == command.job]:
            self.forget(Forget(run.lease, run.job))
        if self.state.floors.pop(command.job, None) is not None:
            self._save()
        return {"result": "accepted"}

    def drain(self, command: Drain) -> Answer:
        """Take no new runs, or take them again."""
        self.state.draining = command.on
        self._save()
        return {"result": "accepted", "active": sum(run.active for run in self.state.runs)}

    def new_epoch(self, epoch: int) -> None:
        """Note the controller that may give commands from now on."""
        if epoch > self.state.epoch:
            self.state.epoch = epoch
            self._save()

    def status(self) -> Answer:
        """Everything that a controller has to know to take over."""
        return {
            "epoch": self.state.epoch,
            "draining": self.state.draining,
            "time_scale": self._time_scale,
            "accelerators": [one.as_message() for one in self._accelerators.values()],
            "runs": [self._described(run) for run in self.state.runs],
            "former": sorted(self.state.floors),
            "last_lease": max([0, *self.state.floors.values(), *(run.lease for run in self.state.runs)]),
        }

    # Looking after runs

    def tick(self) -> None:
        """See what has happened."""
        self._gone = [spawned for spawned in self._gone if spawned.poll() is None]
        for run in list(self.state.runs):
            if run.state in {STARTING, RUNNING, ENDING}:
                self._look_at(run)
            expired = run.expires and run.until is not None and time.time() >= run.until
            if expired and run.state in {WAITING, STARTING, RUNNING}:
                self.end(End(run.lease, run.job))
        self._launch_those_that_can()

    def _recover(self) -> None:
        """Take over from an agent that is gone."""
        for run in self.state.runs:
            watch = self._watch(run)
            if run.state == ENDING:
                lease = watch.files.lease()
                process.ask_to_stop(watch.files, save=lease is None or lease.stop != "now")
        known = {run.directory for run in self.state.runs}
        for directory in (self._directory / "runs").iterdir():
            if directory.name not in known:
                self._clear_away(RunFiles(directory))

    def _clear_away(self, files: RunFiles) -> None:
        """Remove a run that was never accepted, or is forgotten; one that lives, its state lost, is ended."""
        keeper = process.keeper_of(files)
        if keeper is not None and keeper.alive:
            _LOG.warning("a run that nobody knows is asked to stop: %s", files.directory)
            process.ask_to_stop(files, save=True)
        else:
            shutil.rmtree(files.directory, ignore_errors=True)

    def _look_at(self, run: Run) -> None:
        watch = self._watch(run)
        keeper = watch.keeper or process.keeper_of(watch.files)
        if keeper is None:
            if watch.spawned is None:
                watch.spawned = process.start(watch.files)
            elif watch.spawned.poll() is not None and process.keeper_of(watch.files) is None:
                self._conclude(run, process.outcome_of(watch.files, len(run.workers)))
            return
        if watch.keeper is None:
            watch.keeper = keeper
            self._watch_process(keeper)
            if run.state == ENDING:  # the notice may have come before there was anyone to tell
                process.ask_to_stop(watch.files, save=_wants_to_save(watch.files))
        due = time.monotonic() - watch.looked >= _LOOK_SECONDS
        alive = not due or keeper.alive  # before the exit file is looked for, the last thing that a keeper writes
        ended = watch.files.exit()
        if run.started is None and (started := watch.files.started()) is not None:
            run.started = started
            run.state = RUNNING if run.state == STARTING else run.state
            self._tell(run, "started", started=started)
        if due or ended is not None:
            watch.looked = time.monotonic()
            self._report_progress(run, watch)
        if ended is not None:
            self._conclude(run, process.outcome_of(watch.files, len(run.workers)))
        elif not alive:
            if not kill_remains(keeper, f"FAIRWAY_RUN_DIR={watch.files.directory}"):
                _LOG.error("processes of run %s cannot be killed", run.directory)
                return
            self._conclude(run, process.outcome_of(watch.files, len(run.workers)))

    def _report_progress(self, run: Run, watch: _Watch) -> None:
        told = watch.files.progress(len(run.workers))
        if told is None:
            return
        steps, saved, rate = sum(one.step for one in told), process.checkpoint_step(told), _rate(told, run.lease)
        if saved is not None and saved > sum(one.since for one in told) and saved != watch.checkpoint_step:
            watch.checkpoint_step = saved
            self._tell(run, "checkpointed", checkpoint_step=saved, seconds=max(one.checkpoint_seconds for one in told))
        watch.checkpoint_step = saved
        if steps != watch.steps or rate != watch.steps_per_second:
            watch.steps, watch.steps_per_second = steps, rate
            watch.progress_time = max(one.time for one in told)
            self._tell(run, "steps", steps=steps, steps_per_second=rate, checkpoint_step=saved)

    def _conclude(self, run: Run, outcome: process.Outcome) -> None:
        outcome = outcome if outcome.ended is not None else replace(outcome, ended=time.time())
        run.state, run.outcome = ENDED, asdict(outcome)
        if outcome.kind in {process.FINISHED, process.FAILED, process.FAILED_TO_START}:
            self._call_off(run.job)
        self._save()
        watch = self._watches.pop(run.directory, None)
        if watch is not None and watch.spawned is not None:
            self._gone.append(watch.spawned)
        kind = "failed-to-start" if outcome.kind == process.FAILED_TO_START else "exited"
        self._tell(run, kind, **asdict(outcome))
        _LOG.info("job %s, lease %d: %s %s", run.job, run.lease, outcome.kind, outcome.reason)

    def _call_off(self, job: str) -> None:
        """A job is over, or has to wait after a failure: nothing of it starts that waited for this run to end."""
        for run in [run for run in self.state.runs if run.job == job and run.state == WAITING]:
            self._conclude(run, process.Outcome(process.STOPPED_EARLY, reason="its job ended before it had started"))

    def _launch_those_that_can(self) -> None:
        waiting = sorted((run for run in self.state.runs if run.state == WAITING), key=lambda run: run.lease)
        for run in waiting:
            if not any(
                holder.state != WAITING or holder.lease < run.lease
                for holder in self._holders(run.lease, run.job, run.accelerator, run.workers)
            ):
                run.state = STARTING
                self._save()
                watch = self._watch(run)
                watch.spawned = process.start(watch.files)

    def _holders(self, lease: int, job: str, accelerator: str, workers: Sequence[int]) -> list[Run]:
        """Whose end a lease has to wait for: whoever has its workers, and the job itself under an older lease."""
        wanted = set(workers)
        return [
            run
            for run in self.state.runs
            if run.active
            and run.lease != lease
            and (run.job == job or (run.accelerator == accelerator and wanted & set(run.workers)))
        ]

    # Making runs

    def _accelerators_of(self, command: Start) -> list[Accelerator]:
        if len(set(command.workers)) < len(command.workers):
            raise InputError(f"start.workers: {command.workers} given, expected each worker once")
        missing = [number for number in command.workers if (command.accelerator, number) not in self._accelerators]
        if missing:
            raise RefusedError("no-such-worker", f"this machine has no worker '{command.accelerator}' {missing[0]}")
        return [self._accelerators[command.accelerator, number] for number in command.workers]

    def _prepared(self, command: Start, accelerators: list[Accelerator]) -> Run:
        job = command.job
        checkpoints = Path(command.checkpoint_directory or self._directory / "checkpoints" / job).absolute()
        logs = self._directory / "logs" / job
        for directory, what in ((checkpoints, "checkpoint directory"), (logs, "log directory")):
            if problem := process.writable_directory(directory):
                raise RefusedError("cannot-start", f"{what} {problem}")
        emulated = accelerators[0].emulated
        run = Run(
            lease=command.lease,
            job=job,
            accelerator=command.accelerator,
            workers=list(command.workers),
            directory=f"{command.lease}-{job}",
            state=WAITING,
            attempt=command.attempt,
            preemptible=command.preemptible,
            emulated=emulated,
            until=command.until,
            expires=command.expires,
            accepted=time.time(),
        )
        place = self._directory / "runs" / run.directory
        when = datetime.now(UTC).isoformat(timespec="seconds")
        order = Order(
            job=job,
            lease=command.lease,
            title=f"fairway: attempt {command.attempt} of {job}, lease {command.lease}, "
            f"{', '.join(one.description for one in accelerators)}, {when}",
            run=command.run,
            setup=command.setup,
            workdir=command.workdir,
            environment=common_environment(
                self._outside,
                command.envs,
                job=job,
                attempt=command.attempt,
                accelerator=command.accelerator,
                world_size=len(accelerators),
                run_directory=place,
                checkpoint_directory=checkpoints,
                steps=command.steps,
                checkpoint_every_seconds=command.checkpoint_every_seconds,
                emulated=emulated,
            ),
            ranks=rank_environments(accelerators),
            logs=[str(logs / f"rank-{rank}.log") for rank in range(len(accelerators))],
            checkpoint_seconds=command.checkpoint_seconds,
            grace_seconds=command.grace_seconds,
        )
        lease = LeaseState(
            command.lease, command.until, command.expires, pace=self._pace(run, command.steps_per_second)
        )
        process.prepare(place, order, lease)
        return run

    def _pace(self, run: Run, steps_per_second: float | None) -> float | None:
        """How fast each rank of an emulated run may go, on the wall clock."""
        if not run.emulated or steps_per_second is None:
            return None
        return steps_per_second * self._time_scale / len(run.workers)

    def _rewrite(self, run: Run, **changes: Any) -> None:
        files = self._watch(run).files
        lease = files.lease()
        if lease is not None:
            files.write_lease(replace(lease, **changes))

    # Telling and remembering

    def _watch(self, run: Run) -> _Watch:
        if run.directory not in self._watches:
            self._watches[run.directory] = _Watch(RunFiles(self._directory / "runs" / run.directory))
        return self._watches[run.directory]

    def _described(self, run: Run) -> Answer:
        watch = self._watches.get(run.directory)
        described = {name: value for name, value in asdict(run).items() if name != "directory"}
        if watch is not None:
            described |= {
                "steps": watch.steps,
                "steps_per_second": watch.steps_per_second,
                "checkpoint_step": watch.checkpoint_step,
            }
        return described

    def _tell(self, run: Run, event: str, **facts: Any) -> None:
        self._emit({"event": event, "lease": run.lease, "job": run.job, "time": time.time(), **facts})

    def _save(self) -> None:
        self.state.save(self._path)


def _wants_to_save(files: RunFiles) -> bool:
    lease = files.lease()
    return lease is None or lease.stop != "now"


def _rate(told: Sequence[Progress], lease: int) -> float | None:
    """Steps per second of the whole gang under its present lease."""
    rates = [one.steps_per_second for one in told if one.steps_per_second is not None and one.lease in {0, lease}]
    return sum(rates) if len(rates) == len(told) else None
