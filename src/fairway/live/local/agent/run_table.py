"""The runs of this machine: carries out the commands of a controller, whatever is killed in between.

What is wanted is written down before it is done; what was done is read from the directories of the runs. No accelerator
is held by two leases at once: a run waits until the processes of the former holders are gone. `tick` is to be called
when something may have happened, and every now and then.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairway.errors import InputError
from fairway.live.backend.accelerators import Accelerator, seen_again
from fairway.live.backend.answers import CommandAnswer, Refusal, RefusedError
from fairway.live.backend.commands import (
    EndRun,
    ExtendLeases,
    ForgetRun,
    HandOverRun,
    RetireJob,
    RunCommand,
    StartRun,
)
from fairway.live.backend.placement import placed
from fairway.live.backend.reports import RunEnded, RunReport, RunStarted
from fairway.live.backend.status import BackendStatus, MachineSize, OutcomeKind, RunOutcome, RunState, RunStatus
from fairway.live.devices.gpus import Findings
from fairway.live.devices.mps import MpsDaemons
from fairway.live.local.agent.keepers import KeeperProcesses, Keepers, Spawned
from fairway.live.local.agent.nurseries import Forked
from fairway.live.local.agent.preparation import RunPreparation
from fairway.live.local.agent.run_directories import RunDirectories
from fairway.live.local.agent.run_watch import RunWatch
from fairway.live.local.agent.state import AgentState, RunRecord, StateFile
from fairway.live.local.gpu_parts import GpuParts
from fairway.live.local.identity import boot
from fairway.live.local.outcomes import outcome_of
from fairway.live.machine.containment import Containment
from fairway.live.untrusted_file import UntrustedFileError
from fairway.wall_clock import MachineClock

_LOOK_SECONDS = 0.25
"""How often a run is looked at closely; that it ended is seen at once."""

_MOST_RETIRED = 4096  # jobs that were retired lately, whose last leases are known

_LOG = logging.getLogger(__name__)


class RunTable:
    """The runs of one machine. `emit` gets the reports of what happens to them; `instance` names the agent.

    `outside` is the environment that jobs inherit, `containment` where the control groups of runs are made.
    `machine` says what jobs have on this machine besides accelerators.
    """

    def __init__(
        self,
        directory: Path,
        accelerators: Sequence[Accelerator],
        *,
        emit: Callable[[RunReport], None],
        keepers: Keepers | None = None,
        time_scale: float = 1.0,
        outside: Mapping[str, str] = os.environ,
        clock: MachineClock = time,
        instance: str = "",
        containment: Containment | None = None,
        machine: MachineSize | None = None,
    ) -> None:
        self._accelerators = {(one.type, one.number): one for one in accelerators}
        self._emit, self._clock, self._instance = emit, clock, instance
        self._keepers: Keepers = KeeperProcesses() if keepers is None else keepers
        self._containment = containment or Containment()
        self._machine = machine
        emulated = sum(one.emulated for one in accelerators)
        share = machine.cpus / emulated if machine is not None and emulated else None
        real = any(not one.emulated for one in accelerators)
        self._gpu_parts = GpuParts(MpsDaemons(directory, dict(outside)) if real else None)
        self._preparation = RunPreparation(
            directory, dict(outside), time_scale, self._containment, share, self._gpu_parts
        )
        self._preparation.make_directories()
        self.state = AgentState.load(directory / "state.json")
        self._file = StateFile(directory / "state.json", self.state, clock)
        self._directories = RunDirectories(directory, self._keepers)
        self._watches: dict[str, RunWatch] = {}
        self._gone: list[Spawned] = []
        self._retired: dict[str, int] = {}
        self._recover()

    def look_again(self, findings: Findings) -> None:
        """Take in how the accelerators do now."""
        seen = seen_again([*self._accelerators.values()], findings)
        self._accelerators = {(one.type, one.number): one for one in seen}

    def lose_sight(self, why: str) -> None:
        """Nothing is known of the accelerators that are real: they count as sick."""
        self._accelerators = {
            place: one if one.emulated else replace(one, sick=one.sick or why, reading=None)
            for place, one in self._accelerators.items()
        }

    # Commands

    def carry_out(self, command: RunCommand) -> CommandAnswer:
        """Do what a controller asks; raises `RefusedError` or `InputError` where that is not done."""
        match command:
            case StartRun():
                return self._start(command)
            case EndRun():
                return self._end(command)
            case ExtendLeases():
                return self._extend(command)
            case HandOverRun():
                return self._hand_over(command)
            case ForgetRun():
                return self._forget(command)
            case RetireJob():
                return self._retire(command)

    def _start(self, command: StartRun) -> CommandAnswer:
        known = self.state.find(command.lease, command.job)
        if known is not None:
            return CommandAnswer("known", self._described(known))
        newest = max(self.state.newest_lease(command.job), self._retired.get(command.job, 0))
        if command.lease <= newest:
            return CommandAnswer("stale", newest=newest)
        if self.state.draining:
            raise RefusedError(Refusal.DRAINING, "this agent is draining and takes no new runs")
        if command.expires and not command.program.preemptible:
            raise InputError("start-run.expires: true given for a job that is not preemptible; its lease must not end")
        accelerators = placed(command, self._accelerators)
        for holder in self.state.holders(
            command.lease, command.job, command.accelerator, command.workers, command.share
        ):
            if holder.state not in {RunState.ENDING, RunState.WAITING}:
                message = f"job '{holder.job}' runs under lease {holder.lease} and was not asked to end; end it first"
                raise RefusedError(Refusal.BUSY, message)
        run = self._preparation.prepared(command, accelerators, now=self._clock.time())
        self.state.runs.append(run)
        if self.state.has_finished(command.job):  # of which the controller had not heard when it asked
            self._call_off(command.job)
        self._launch(self.state.startable())  # which writes it down, with the run itself
        if run.state is RunState.WAITING:
            self._file.save()
        return CommandAnswer("accepted", self._described(run))

    def _end(self, command: EndRun) -> CommandAnswer:
        run = self.state.find(command.lease, command.job)
        if run is None:
            return CommandAnswer("stale", newest=self.state.newest_lease(command.job))
        if not run.active:
            return CommandAnswer("known", self._described(run))
        if command.save and not run.preemptible:
            message = f"job '{run.job}' is not preemptible; end it without saving"
            raise RefusedError(Refusal.NOT_PREEMPTIBLE, message)
        if run.state is RunState.WAITING:
            self._conclude(run, RunOutcome(OutcomeKind.STOPPED, reason="asked to stop before it had started"))
        else:
            self._ask_to_end(run, save=command.save)
        return CommandAnswer("accepted", self._described(run))

    def _ask_to_end(self, run: RunRecord, *, save: bool) -> None:
        before, run.state = run.state, RunState.ENDING
        self._keepers.ask_to_stop(self._watch(run).files, save=save)  # first: a full disk is no reason to let it run on
        if before is not RunState.ENDING:
            self._file.save_soon()

    def _extend(self, command: ExtendLeases) -> CommandAnswer:
        wanted = None if command.leases is None else set(command.leases)
        extended = [
            run
            for run in self.state.runs
            if run.state not in {RunState.ENDING, RunState.ENDED} and (wanted is None or run.lease in wanted)
        ]
        for run in extended:
            self._end_at(run, command.until)
            self._rewrite(run, until=command.until)
        if extended:
            self._file.save()
        return CommandAnswer("accepted", leases=tuple(sorted({run.lease for run in extended})))

    def _hand_over(self, command: HandOverRun) -> CommandAnswer:
        if (known := self.state.find(command.lease, command.job)) is not None:
            if known.active:  # an agent that was killed in between may not have written it into the lease
                self._go_on_under(known, command)
            return CommandAnswer("known", self._described(known))
        run = self.state.find(command.old, command.job)
        newest = self.state.newest_lease(command.job)
        if run is None or not run.active or command.lease <= newest:
            return CommandAnswer("stale", newest=newest)
        if run.state is RunState.ENDING:
            message = f"job '{run.job}' was asked to end under lease {run.lease}; start it anew"
            raise RefusedError(Refusal.ENDING, message)
        run.lease = command.lease
        self._end_at(run, command.until)
        self._file.save()
        self._go_on_under(run, command)
        return CommandAnswer("accepted", self._described(run))

    def _go_on_under(self, run: RunRecord, command: HandOverRun) -> None:
        changes: dict[str, Any] = {"lease": command.lease, "until": command.until}
        if command.steps_per_second is not None:
            changes["pace"] = self._preparation.pace(run, command.steps_per_second)
        self._rewrite(run, **changes)

    def _forget(self, command: ForgetRun) -> CommandAnswer:
        run = self.state.find(command.lease, command.job)
        if run is None:
            return CommandAnswer("known")
        if run.active:
            message = f"job '{run.job}' has not ended under lease {run.lease}; end it first"
            raise RefusedError(Refusal.ACTIVE, message)
        self.state.floors[run.job] = self.state.newest_lease(run.job)
        self.state.runs.remove(run)
        self._file.save_soon()
        self._directories.remove(self._preparation.files_of(run))
        return CommandAnswer("accepted")

    def _retire(self, command: RetireJob) -> CommandAnswer:
        if any(run.active for run in self.state.runs if run.job == command.job):
            raise RefusedError(Refusal.ACTIVE, f"job '{command.job}' still runs; end it first")
        for run in [run for run in self.state.runs if run.job == command.job]:
            self._forget(ForgetRun(run.lease, run.job))
        # A command to start it may come once more; those of a former connection or agent never come here.
        self._retired[command.job] = max(self.state.newest_lease(command.job), self._retired.get(command.job, 0))
        if len(self._retired) > _MOST_RETIRED:
            del self._retired[next(iter(self._retired))]
        if self.state.floors.pop(command.job, None) is not None:
            self._file.save_soon()
        return CommandAnswer("accepted")

    def drain(self, *, on: bool) -> None:
        """Take no new runs, or take them again; what runs goes on."""
        self.state.draining = on
        self._file.save()

    def new_epoch(self, epoch: int) -> None:
        """Note the controller that may give commands from now on."""
        if epoch > self.state.epoch:
            self.state.epoch = epoch
            self._retired.clear()
            self._file.save()

    def close(self, seconds: float) -> None:
        """Finish what can be finished within some seconds; runs go on."""
        self._file.close()
        self._directories.finish(seconds)
        self._containment.discard()

    def status(self) -> BackendStatus:
        """Everything that a controller has to know to take over."""
        return BackendStatus(
            instance=self._instance,
            epoch=self.state.epoch,
            accelerators=tuple(self._accelerators.values()),
            runs=tuple(self._described(run) for run in self.state.runs),
            former=tuple(sorted(self.state.floors)),
            last_lease=self.state.last_lease(),
            draining=self.state.draining,
            caveats=(*self._containment.caveats, *self._gpu_parts.caveats),
            machines=() if self._machine is None else (self._machine,),
        )

    # Looking after runs

    def tick(self) -> None:
        """See what has happened."""
        self._gone = [spawned for spawned in self._gone if spawned.poll() is None]
        for run in list(self.state.runs):
            if run.state in {RunState.STARTING, RunState.RUNNING, RunState.ENDING}:
                self._look_after(run)
            if run.expires and run.state in {RunState.WAITING, RunState.STARTING, RunState.RUNNING}:
                ends = self._watch(run).ends
                if ends is not None and self._clock.monotonic() >= ends:
                    self._end(EndRun(run.lease, run.job))
        self._launch(self.state.startable())
        self._gpu_parts.look_after(self._devices_in_parts(), self._clock.monotonic())
        self._file.time_passed()

    def _devices_in_parts(self) -> list[str | None]:
        """The GPUs of which active runs have parts."""
        parts = [run for run in self.state.runs if run.active and run.share < 1]
        places = [(run.accelerator, worker) for run in parts for worker in run.workers]
        return [self._accelerators[place].device for place in places if place in self._accelerators]

    def kill_all(self) -> bool:
        """Kill what runs, without notice or grace; whether nothing is left."""
        for run in [run for run in self.state.runs if run.active]:
            files = self._watch(run).files
            if run.state is RunState.WAITING or self._keepers.clear_up(files):
                outcome = outcome_of(files, run.ranks)
                lost = replace(outcome, kind=OutcomeKind.LOST, reason="all runs of its machine were given up")
                self._conclude(run, lost if files.exit() is None else outcome)
        return not any(run.active for run in self.state.runs)

    def _recover(self) -> None:
        """Take over from an agent that is gone.

        A run whose files are gone was forgotten, or never came to be; the controller asks for it again if it wants it.
        Of one that has ended, all that the controller has to hear is in the state: a job that has come to its end
        must not run again because the machine stopped before the directory of its run was on the disk. When it has
        stopped, all runs have stopped with it, and what is written here may be from before their ends: none goes on.
        """
        if self.state.boot not in {"", boot()}:
            for run in [run for run in self.state.runs if run.active]:
                files = self._preparation.files_of(run)
                outcome = RunOutcome(OutcomeKind.LOST, reason="the machine has stopped", ended=self._clock.time())
                with suppress(UntrustedFileError, OSError):
                    if files.exit() is not None or self._keepers.has_keeper(files):
                        outcome = outcome_of(files, run.ranks)
                run.state, run.outcome = RunState.ENDED, outcome
        self.state.boot = boot()
        for run in [run for run in self.state.runs if run.active and self._preparation.files_of(run).order() is None]:
            self.state.floors[run.job] = max(self.state.newest_lease(run.job), 0)
            self.state.runs.remove(run)
        for run in self.state.runs:
            watch = self._watch(run)
            if run.state is RunState.ENDING:
                self._keepers.ask_to_stop(watch.files, save=watch.wants_to_save)
        known = {run.directory for run in self.state.runs}
        self._containment.clear(known | self._directories.clear(known))

    def _look_after(self, run: RunRecord) -> None:
        """Look at a run; whatever is wrong with its files ends this run, and changes nothing for the others."""
        try:
            self._look_at(run)
        except UntrustedFileError as error:
            if run.state is not RunState.ENDING:
                _LOG.warning("job %s, lease %d is ended: %s", run.job, run.lease, error)
                self._ask_to_end(run, save=False)
        except OSError:  # a full disk, for example; what is not written down now is written down with what comes next
            _LOG.exception("cannot look after job %s, lease %d", run.job, run.lease)

    def _look_at(self, run: RunRecord) -> None:
        watch, keepers = self._watch(run), self._keepers
        if not watch.kept:
            if not keepers.has_keeper(watch.files):
                self._look_for_keeper(run, watch)
                return
            watch.kept = True
            keepers.watch(watch.files)
            if run.state is RunState.ENDING:  # the notice may have come before there was a keeper to signal
                keepers.ask_to_stop(watch.files, save=watch.wants_to_save)
        due = self._clock.monotonic() - watch.looked >= _LOOK_SECONDS
        alive = not due or keepers.is_alive(watch.files)  # before its exit file, its last deed, is looked for
        ended = watch.files.exit()
        if run.started is None and (started := watch.files.started()) is not None:
            run.started = started
            run.state = RunState.RUNNING if run.state is RunState.STARTING else run.state
            self._emit(RunStarted(run.lease, run.job, self._clock.time(), started))
        if due or ended is not None:
            watch.looked = self._clock.monotonic()
            if alive and ended is None:
                for report in watch.progress(run, self._clock.time()):
                    self._emit(report)
            else:
                with suppress(UntrustedFileError):  # which its outcome tells
                    for report in watch.progress(run, self._clock.time()):
                        self._emit(report)
        overdue = run.state is RunState.ENDING and watch.is_overdue(self._clock.monotonic())
        if ended is not None and not overdue:
            # A job of the same user can have written it; that the keeper and all processes are gone, it cannot.
            if not keepers.is_alive(watch.files) and self._containment.group_of(run.directory).kill():
                self._conclude(run, outcome_of(watch.files, run.ranks))
        elif not alive or overdue:
            if not keepers.clear_up(watch.files):
                _LOG.error("processes of run %s cannot be killed", run.directory)
                return
            self._conclude(run, outcome_of(watch.files, run.ranks))

    def _look_for_keeper(self, run: RunRecord, watch: RunWatch) -> None:
        """No keeper has claimed the run: set one on it, or conclude that it cannot start.

        Where its directory was removed, so was the claim, and the keeper may live: both end.
        """
        if not watch.files.directory.is_dir():
            if self._keepers.clear_up(watch.files):
                self._conclude(run, outcome_of(watch.files, run.ranks))
        elif watch.spawned is None or (isinstance(watch.spawned, Forked) and watch.spawned.lost):
            watch.spawned = self._keepers.start(watch.files)
        elif watch.spawned.poll() is not None and not self._keepers.has_keeper(watch.files):
            self._conclude(run, outcome_of(watch.files, run.ranks))

    def _conclude(self, run: RunRecord, outcome: RunOutcome) -> None:
        outcome = outcome if outcome.ended is not None else replace(outcome, ended=self._clock.time())
        run.state, run.outcome = RunState.ENDED, outcome
        if outcome.kind in {OutcomeKind.FINISHED, OutcomeKind.FAILED, OutcomeKind.FAILED_TO_START}:
            self._call_off(run.job)
        self._file.save_soon()
        watch = self._watches.pop(run.directory, None)
        if watch is not None and watch.spawned is not None:
            self._gone.append(watch.spawned)
        self._emit(RunEnded(run.lease, run.job, self._clock.time(), outcome))
        _LOG.info("job %s, lease %d: %s %s", run.job, run.lease, outcome.kind, outcome.reason)

    def _call_off(self, job: str) -> None:
        """A job is over, or has to wait after a failure: nothing of it starts that waited for this run to end."""
        for run in [run for run in self.state.runs if run.job == job and run.state is RunState.WAITING]:
            self._conclude(run, RunOutcome(OutcomeKind.STOPPED, reason="its job ended before it had started"))

    def _launch(self, runs: Sequence[RunRecord]) -> None:
        """Write down that runs start, all at once, and set keepers on them."""
        for run in runs:
            run.state = RunState.STARTING
        if runs:
            self._file.save()
        for run in runs:
            watch = self._watch(run)
            watch.spawned = self._keepers.start(watch.files)

    # Describing and remembering

    def _rewrite(self, run: RunRecord, **changes: Any) -> None:
        """Change the lease as the job sees it."""
        files = self._watch(run).files
        lease = files.lease()
        if lease is not None:
            files.write_lease(replace(lease, **changes))

    def _watch(self, run: RunRecord) -> RunWatch:
        if run.directory not in self._watches:
            self._watches[run.directory] = RunWatch(self._preparation.files_of(run), self._monotonic_at(run.until))
        return self._watches[run.directory]

    def _end_at(self, run: RunRecord, until: float | None) -> None:
        """Let a lease end at a time of the wall clock as it is set now."""
        run.until, self._watch(run).ends = until, self._monotonic_at(until)

    def _monotonic_at(self, wall: float | None) -> float | None:
        return None if wall is None else self._clock.monotonic() + wall - self._clock.time()

    def _described(self, run: RunRecord) -> RunStatus:
        watch = self._watches.get(run.directory)
        fields = run.fields()
        del fields["directory"]
        seen = {} if watch is None else {
            "steps": watch.steps,
            "steps_per_second": watch.steps_per_second,
            "checkpoint_step": watch.checkpoint_step,
        }  # fmt: skip
        return RunStatus(**{**fields, "workers": tuple(run.workers), **seen})
