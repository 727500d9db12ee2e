"""Short ways to fill a store."""

from __future__ import annotations

from fairway.engine.training.messages import Grant
from fairway.store import Store
from fairway.store.job_changes import change_job
from fairway.store.leases import grant_lease, last_lease
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit
from fairway.store.workers import Device, register_agent

SPEC = {"run": "python train.py", "resources": {"accelerators": "v100:1"}}


def submitted(store: Store, count: int = 1, *, at: float = 1.0, **fields: object) -> list[str]:
    submissions = [Submission(spec=SPEC, **fields) for _ in range(count)]  # type: ignore[arg-type]
    return [record.id for record in store.write(submit, submissions, at=at)]


def with_workers(store: Store, count: int = 4, accelerator: str = "v100", agent: str = "here") -> None:
    devices = [Device(accelerator, str(number)) for number in range(count)]
    store.write(register_agent, agent, devices, at=0.0)


def granted(store: Store, *jobs: str, workers: tuple[int, ...] = (0,), at: float = 2.0) -> int:
    number = store.read(last_lease) + 1
    store.write(grant_lease, Grant(number, jobs, "v100", workers, until=100.0), at=at)
    return number


def running(store: Store, job: str, workers: tuple[int, ...] = (0,), at: float = 2.0) -> int:
    lease = granted(store, job, workers=workers, at=at)
    assert store.write(change_job, job, JobState.RUNNING, at=at, lease=lease)
    return lease
