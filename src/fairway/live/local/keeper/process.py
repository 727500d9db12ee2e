"""Keeps one run: starts the job's processes, passes on the wish to stop, and writes down how it ended.

One keeper per run, in a session of its own, so that it goes on whatever happens to the agent. Each rank of the gang is
a process group. A stop goes notice → checkpoint → SIGTERM → grace → SIGKILL, always of whole groups; ranks are reaped
only after their group is empty, so that no signal can reach a stranger with the same number. If the keeper itself is
killed, the system kills the ranks with it, and the agent clears up what they had started: how a process ended whose
parent is gone cannot be learned any more, and its checkpoint is worth more than a guess.

    python -m fairway.live.local.keeper RUN_DIRECTORY
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, TypeVar

from fairway.live.backend.channel import STOPPED
from fairway.live.bounded_log import open_log, trim_log
from fairway.live.local.agent.agreement_server import AgreementServer
from fairway.live.local.container import Container, remove_containers
from fairway.live.local.identity import any_process, identify, process_table
from fairway.live.local.job_user import JobUser
from fairway.live.local.keeper.checkpoint_sender import CheckpointSender, bring_command
from fairway.live.local.keeper.stopping import Stopping
from fairway.live.local.run_files import RunExit, RunFiles, RunOrder
from fairway.live.machine.containment import group_at, most_processes
from fairway.live.untrusted_file import UntrustedFileError, open_regular

T = TypeVar("T")

_PARENT_DEATH_SIGNAL = 1
CHILD_SUBREAPER = 36
_LOOK_SECONDS = 0.05
"""How often to look while waiting for groups to become empty, of which no signal tells."""

_WRITE_AGAIN_SECONDS = 1.0
_LONGEST_NAME = 200
"""Characters of a command in the reason why it cannot be started: everyone who lists jobs reads it."""

_LOG_SECONDS = 0.5
"""How often to look whether a log has grown too large."""

_BUILD = "fairway.live.local.environment_build"
_TAIL_BYTES = 400
"""How much of what a failed installation has printed last is said as the reason."""


class _CannotStartError(Exception):
    """The job's processes could not be started; the message says why."""


class Keeper:
    """The ranks of one run, from start to exit."""

    def __init__(self, files: RunFiles, order: RunOrder) -> None:
        self._files = files
        self._order = order
        self._ranks: list[subprocess.Popen[bytes]] = []
        self._codes: dict[int, int] = {}
        self._first: int | None = None
        self._logs: list[IO[bytes]] = []
        self._logs_due = 0.0
        self._stop = Stopping(
            checkpoint_seconds=order.checkpoint_seconds,
            grace_seconds=order.grace_seconds,
            deliver=self._signal,
            is_over=self._is_over,
            now=time.monotonic,
        )
        self._agreement: AgreementServer | None = None
        self._sender: CheckpointSender | None = None
        self._told = self._shut_down = self._at_once = self._out_of_memory = False
        self._environment: dict[str, str] = {}
        self._container = None if order.container is None else Container(**order.container)
        self._group = group_at(order.groups)
        self._user = None if order.user is None else JobUser(**order.user)
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)

    def run(self) -> RunExit:
        """Run the job to its end."""
        try:
            self._open_logs()
            self._group.make(self._order.cpus, self._order.memory_bytes)
            self._let_ranks_agree()
            lease = self._files.lease()
            if lease is None or lease.stop is None:
                self._bring_checkpoints(self._logs[0])
                self._set_up(self._logs[0])
                self._start(self._logs)
                with suppress(OSError):  # a full disk is no reason to stop a job that runs
                    self._files.write_started(time.time())
            else:
                self._stop.asked = lease.stop
        except _CannotStartError as error:
            self._stop.asked = self._stop.asked or ("now" if self._told else None)
            self._end_everything()
            return self._exit(str(error))
        self._wait()
        if self._sender is not None:
            self._sender.finish(self._order.checkpoint_seconds, self._is_urgent)
        self._end_everything()
        return self._exit(None)

    def _exit(self, error: str | None) -> RunExit:
        codes = [] if error else [self._codes[rank] for rank in range(len(self._ranks))]
        stop = self._stop
        return RunExit(
            codes, self._first, stop.failed, error, stop.asked, stop.terminated, stop.killed, time.time(),
            self._out_of_memory,
        )  # fmt: skip

    # Starting

    def listen(self) -> None:
        """Be ready for signals; before the claim names this process to the agent, whose signal would kill it."""

        def told(number: int, _: object) -> None:
            self._told = True
            self._shut_down |= number == signal.SIGTERM
            self._at_once |= number == signal.SIGUSR2

        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, told)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)  # not SIG_IGN, which the job would inherit
        # What a rank starts and leaves behind comes to the keeper, which reaps it, and kills it in the end.
        prctl(CHILD_SUBREAPER, 1)

    def _open_logs(self) -> None:
        of = self._order.environment["FAIRWAY_WORLD_SIZE"]
        try:
            for rank, name in zip(self._order.numbers, self._order.logs, strict=True):
                log = os.fdopen(open_log(Path(name)), "ab", buffering=0)
                self._logs.append(log)
                if self._user is not None:  # who opens /dev/stdout opens this file; its directory stays closed
                    os.fchown(log.fileno(), self._user.uid, self._user.gid)
                log.write(f"=== {self._order.title}, rank {rank} of {of} ===\n".encode())
        except UntrustedFileError as error:
            raise _CannotStartError(f"log: {error}; move it away, so that a new one can be made") from None
        except OSError as error:
            raise _CannotStartError(f"log {error.filename}: {error.strerror}") from None

    def _let_ranks_agree(self) -> None:
        """Before setup, which may take longer than it does on the other nodes: their ranks need not wait for it."""
        where = self._order.agreement
        if where is None:
            return
        try:
            self._agreement = AgreementServer(**where)
        except OSError as error:
            why = error.strerror or error
            raise _CannotStartError(f"{where['address']}:{where['port']} cannot be listened at: {why}") from None

    def _bring_checkpoints(self, log: IO[bytes]) -> None:
        url, before = self._order.checkpoints_at, os.fstat(log.fileno()).st_size
        if url is None:
            return
        if self._run_before(bring_command(url, self._order.environment["FAIRWAY_CHECKPOINT_DIR"]), log, self._beside()):
            lines = _tail_of(self._order.logs[0], before).strip().splitlines() or ["it said nothing"]
            raise _CannotStartError(f"checkpoints: {lines[-1]}")

    def _is_urgent(self) -> bool:
        """Whether the job has to end at once, whatever was not sent yet."""
        if self._told:
            self._told = False
            self._ask()
        return self._stop.asked == "now"

    def _set_up(self, log: IO[bytes]) -> None:
        if self._order.requirements is not None:
            self._build_environment(self._order.requirements, log)
        if self._container is not None:
            self._prepare(self._container.fetching(), f"the image {self._container.image} cannot be had", log)
        if self._order.setup is not None:
            code = self._run_before(self._order.setup, log)
            if code:
                raise _CannotStartError(f"setup ended with exit code {code}; its output is in the log")

    def _build_environment(self, requirements: str, log: IO[bytes]) -> None:
        """Have the virtual environment that the job asks for, and let all that follows run in it."""
        link = self._files.channel.directory / "environment"
        file = str(Path(self._order.workdir or "/") / requirements)
        command = [sys.executable, "-m", _BUILD, file, str(self._order.environments), str(link)]
        self._prepare(command, f"{requirements} cannot be installed", log)
        try:
            path = os.fspath(link.readlink())
        except OSError as error:
            raise _CannotStartError(f"environment: {requirements}: what was built cannot be found: {error}") from None
        self._environment = {
            "VIRTUAL_ENV": path,
            "PATH": f"{path}/bin:{self._order.environment.get('PATH', os.defpath)}",
        }

    def _prepare(self, command: list[str], failing: str, log: IO[bytes]) -> None:
        """Run what the environment needs; where it fails, the end of what it has said is the reason."""
        before = os.fstat(log.fileno()).st_size
        code = self._run_before(command, log)
        if code:
            tail = " ".join(_tail_of(self._order.logs[0], before).split()) or "it said nothing"
            raise _CannotStartError(f"environment: {failing} (exit code {code}): {tail}")

    def _run_before(self, command: str | list[str], log: IO[bytes], variables: Mapping[str, str] | None = None) -> int:
        """Run something before the job, unless it is to stop; its exit code."""
        if variables is None:
            variables = self._variables({}) if self._container is None else self._container.surroundings
        process = self._spawn(command, variables, log)
        while process.poll() is None:
            self._sleep(None)
            if self._told:
                os.killpg(process.pid, signal.SIGKILL)
                self._stop.terminated = True
        return process.returncode

    def _start(self, logs: list[IO[bytes]]) -> None:
        for index, (additions, log) in enumerate(zip(self._order.ranks, logs, strict=True)):
            run, variables = self._order.run, self._variables(additions)
            if self._container is not None:
                run, variables = self._container.running(index, run, variables, self._order.workdir)
            self._ranks.append(self._spawn(run, variables, log))
        if self._order.checkpoints_at is not None:
            self._sender = CheckpointSender(
                self._order.checkpoints_at,
                self._order.environment["FAIRWAY_CHECKPOINT_DIR"],
                lambda command: self._spawn(command, self._beside(), logs[0]),
                lambda: self._sleep(_LOOK_SECONDS),
            )

    def _beside(self) -> dict[str, str]:
        """The environment of what runs beside the ranks with what the job has given, in no container."""
        return {**({} if self._container is None else self._container.surroundings), **self._variables({})}

    def _variables(self, additions: Mapping[str, str]) -> dict[str, str]:
        return {**self._order.environment, **self._environment, **additions}

    def _spawn(self, run: str | list[str], variables: Mapping[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        workdir = self._order.workdir
        if workdir is not None and self._user is None and not Path(workdir).is_dir():
            raise _CannotStartError(f"workdir {workdir}: no such directory")
        keeper = os.getpid()

        def become_the_job() -> None:
            self._group.enter()
            if not self._group.paths:  # the next best: it counts all processes of a user, and none of root
                _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
                with suppress(OSError, ValueError):
                    resource.setrlimit(resource.RLIMIT_NPROC, (most_processes(), hard))
            if self._user is not None:
                self._user.become()
                with suppress(OSError):  # the job finds out itself, when it saves
                    Path(self._order.environment["FAIRWAY_CHECKPOINT_DIR"]).mkdir(parents=True, exist_ok=True)
                os.chdir(workdir or "/")
            # Last, since a change of the user takes the wish back. podman has to live to pass the signal on.
            prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL if self._container is None else signal.SIGTERM)
            if os.getppid() != keeper:  # it died before the system knew of the wish
                os._exit(STOPPED)

        try:
            return subprocess.Popen(
                [shutil.which("bash") or "/bin/sh", "-c", run] if isinstance(run, str) else run,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=workdir if self._user is None else "/",
                env=variables,
                process_group=0,
                preexec_fn=become_the_job,  # noqa: PLW1509 - a keeper has one thread
            )
        except subprocess.SubprocessError:
            who = "" if self._user is None else f" by user '{self._user.name}'"
            raise _CannotStartError(f"workdir {workdir}: cannot be entered{who}") from None
        except (OSError, ValueError) as error:
            command = (run if isinstance(run, str) else run[0])[:_LONGEST_NAME]
            raise _CannotStartError(f"command '{command}': {getattr(error, 'strerror', None) or error}") from None

    # Waiting and stopping

    def _wait(self) -> None:
        while True:
            self._collect()
            if self._told:
                self._told = False
                self._ask()
            self._stop.advance(self._codes, len(self._ranks))
            over = self._is_over()
            if over and not self._is_needed_by_others():
                return
            self._sleep(None if self._stop.stage == "running" and not over else _LOOK_SECONDS)

    def _is_needed_by_others(self) -> bool:
        """Whether ranks on other nodes go on and agree here, while those of this node are done."""
        goes_on = self._stop.asked is None and not self._stop.failed
        return goes_on and self._agreement is not None and self._agreement.is_needed

    def _sleep(self, seconds: float | None) -> None:
        due = max(self._logs_due - time.monotonic(), 0.0)
        wait = due if seconds is None else min(seconds, due)
        if self._agreement is None:
            select.select([self._reader], [], [], wait)
        else:
            self._agreement.serve(wait, until=self._reader)
        if time.monotonic() >= self._logs_due:
            self._bound_logs()
        with suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                pass

    def _bound_logs(self) -> None:
        """Drop the beginning of logs that have grown too large; a job that prints fast is looked at more often."""
        dropped = [trim_log(log.fileno(), self._order.log_bytes) for log in self._logs]
        self._logs_due = time.monotonic() + (_LOOK_SECONDS if any(dropped) else _LOG_SECONDS)

    def _collect(self) -> None:
        """Note which ranks have ended, without reaping them, and reap orphans."""
        for rank, process in enumerate(self._ranks):
            if rank in self._codes:
                continue
            ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
                self._codes[rank] = code
                if code and self._first is None:
                    self._first = rank
        known = {process.pid for process in self._ranks}
        if self._sender is not None:
            known.add(self._sender.pid)
        for pid in children_of(os.getpid()) - known:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

    def _ask(self) -> None:
        """The agent has changed the lease, or the machine is to stop."""
        lease = self._files.lease()
        wish = lease.stop if lease is not None and not self._at_once else "now"
        if wish is None and self._shut_down and lease is not None:
            wish = "save"  # the machine goes down and takes the agent with it, so the notice has to come from here
            with suppress(OSError):  # a job that does not hear of it is terminated when its time is over
                self._files.write_lease(replace(lease, stop=wish))
        if wish is not None:
            self._stop.ask(wish, cooperative=lambda: self._files.is_cooperative(self._order.numbers))

    def _signal(self, number: signal.Signals) -> None:
        for process in self._ranks:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)

    def _is_over(self) -> bool:
        return len(self._codes) == len(self._ranks) and not self._groups_alive()

    def _groups_alive(self) -> bool:
        if self._group.paths and self._group.is_empty():
            return False  # which is found out much faster than by looking at all processes
        groups = {process.pid for process in self._ranks}
        return any_process(lambda row: row.group in groups)

    def _end_everything(self) -> None:
        """Kill what has left its group, and reap all."""
        self._signal(signal.SIGKILL)
        while not self._group.kill():
            print("processes of the run cannot be killed; it is tried again", flush=True)
        while True:
            for pid in children_of(os.getpid()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                self._out_of_memory = self._group.ran_out_of_memory()
                self._group.remove()
                remove_containers(self._order)
                self._bound_logs()
                return


def _tail_of(log: str, before: int) -> str:
    """The last of what was printed into a log after so many bytes."""
    try:
        descriptor = open_regular(Path(log), os.O_RDONLY)
    except (OSError, UntrustedFileError):  # what is installed may have put anything in its place
        return ""
    with os.fdopen(descriptor, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(before, size - _TAIL_BYTES))
        return file.read(_TAIL_BYTES).decode(errors="replace")


def children_of(parent: int) -> set[int]:
    """The children of a process, dead ones too."""
    with suppress(OSError):
        return {int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()}
    return {row.pid for row in process_table() if row.parent == parent}


_LIBC = ctypes.CDLL(None)


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process."""
    _LIBC.prctl(option, value, 0, 0, 0)


def main(directory: str) -> int:
    """Keep the run in this directory, unless another keeper does."""
    files = RunFiles(Path(directory))
    me = identify(os.getpid())
    assert me is not None
    order = files.order()
    if order is None:
        print(f"{directory}: the order of this run cannot be read")
        return 1
    keeper = Keeper(files, order)
    keeper.listen()
    if _when_there_is_room(files, lambda: files.claim(asdict(me))):
        ended = keeper.run()
        _when_there_is_room(files, lambda: files.write_exit(ended))
    return 0


def _when_there_is_room(files: RunFiles, write: Callable[[], T]) -> T | None:
    """Write something down as soon as the disk has room for it; None if the directory of the run is gone.

    A run that could not be claimed is no failure of its job, and of how it ended the agent learns in no other way.
    """
    while True:
        try:
            return write()
        except OSError as error:
            print(f"cannot write into the directory of the run: {error}", flush=True)
            if not files.directory.is_dir():
                return None
            time.sleep(_WRITE_AGAIN_SECONDS)
