"""An installation for tests: a directory with a store, a controller and its agent, and real processes under them."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairway.errors import FairwayError
from fairway.live.backend.protocol import Backend
from fairway.live.backend.status import BackendStatus
from fairway.live.local.agent import client as agent_client
from fairway.live.local.agent.client import AgentClient
from fairway.live.local.agent.keepers import KeeperProcesses
from fairway.live.local.log_files import log_path
from fairway.live.local.run_files import RunFiles
from fairway.live.machine.containment import Containment
from fairway.live.training.controller import Controller
from fairway.live.training.settings import ControllerSettings
from fairway.store import Store, open_store
from fairway.store.job_changes import job_named, request_cancel
from fairway.store.queries import JobHistory, job_history, list_jobs
from fairway.store.records import JobRecord
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit

PATIENCE = 60.0
"""Seconds until a test gives up; far more than anything takes, since the machine may be busy."""


def until(condition: Callable[[], Any], what: str = "", patience: float = PATIENCE) -> Any:
    """Wait until a condition holds, and give its value."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {patience} s in vain {what}"
        time.sleep(0.02)
    return value


class Site:
    """Use it as `with Site(tmp_path) as site`; whatever still runs is killed on leaving."""

    def __init__(self, directory: Path, emulate: str | None = "v100=2,k80=1", **settings: Any) -> None:
        self.directory = directory / "site"
        settings = {"round_seconds": 1.0, "restart_seconds": 0.1, **settings}
        self.settings = ControllerSettings(self.directory, emulate=emulate, **settings)
        self.store: Store = open_store(self.directory)
        self.controller: Controller

    def __enter__(self) -> Site:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.controller.stop()
        self.store.close()
        with suppress(ProcessLookupError):
            pid = self.agent_pid()
            os.kill(pid, signal.SIGKILL)
            for _, agent in agent_client._started:  # a child of this process, which has to wait for it
                if agent.pid == pid:
                    agent.wait()
        for directory in (self.settings.backend_directory / "runs").iterdir():
            files = RunFiles(directory)
            if not files.claim({"pid": 0, "start": 0, "boot": ""}):  # a keeper that is just starting finds it taken
                assert KeeperProcesses().clear_up(files)
        Containment.found(self.settings.backend_directory).discard()

    def start(self, *, through: Backend | None = None, **changes: Any) -> Controller:
        """Start a controller, the first or another one."""
        settings = ControllerSettings(**{**_fields(self.settings), **changes}) if changes else self.settings
        self.controller = Controller(settings, self.store, backend=through)
        self.controller.start()
        return self.controller

    def restart(self) -> Controller:
        """Stop the controller, and start another on the same store and agent."""
        self.controller.stop()
        return self.start()

    def submit(self, run: str | list[str], **fields: Any) -> str:
        (job,) = self.submit_together({"run": run, **fields})
        return job

    def submit_together(self, *specs: Mapping[str, Any]) -> list[str]:
        """So that the same decision is about all of them."""
        given = [
            Submission(spec=spec, team=spec.get("team"), weight=spec.get("weight", 1.0), steps=spec.get("steps"))
            for spec in specs
        ]
        jobs = self.store.write(submit, given, at=time.time())
        self.controller.notify()
        return [job.id for job in jobs]

    def cancel(self, job: str) -> None:
        self.store.write(request_cancel, job, at=time.time())
        self.controller.notify()

    def job(self, name: str) -> JobRecord:
        return self.store.read(job_named, name)

    def jobs(self) -> list[JobRecord]:
        return self.store.read(list_jobs, limit=1000, newest_first=False).jobs

    def history(self, name: str) -> JobHistory:
        return self.store.read(job_history, name)

    def wait_for(self, name: str, *states: JobState) -> JobRecord:
        found: JobRecord = until(
            lambda: job if (job := self.job(name)).state in states else None, f"for {name} to be {states}"
        )
        return found

    def wait_for_all(self, *, state: JobState = JobState.SUCCEEDED) -> None:
        """Until no job is active; all of them have to end in this state."""
        until(lambda: not any(job.active for job in self.jobs()), "for all jobs")
        wrong = [job for job in self.jobs() if job.state is not state]
        assert not wrong, wrong

    def agent(self) -> BackendStatus:
        """What the agent says of itself."""

        async def ask() -> BackendStatus:
            client, greeting = await AgentClient.connect(self.settings.backend_directory, None)
            await client.close()
            return greeting.status

        return asyncio.run(ask())

    def agent_pid(self) -> int:
        try:
            return int(self.agent().instance)
        except FairwayError:
            raise ProcessLookupError from None

    def log(self, job: str, rank: int = 0) -> str:
        path = log_path(self.settings.backend_directory, job, rank)
        return path.read_text() if path.exists() else ""


def _fields(settings: ControllerSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in ControllerSettings.__dataclass_fields__}
