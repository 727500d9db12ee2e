"""A server of its own for the dashboard: 1,000 workers and 10,000 jobs in the store, of which some change every second.

The scheduler stands in for a real one, so that all that the process does is what the page asks of it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from threading import Event, Thread

from fairway.engine.training.messages import Grant
from fairway.service.http.server import ServiceServer
from fairway.store import Store, open_store
from fairway.store.job_changes import change_job, run_jobs
from fairway.store.leases import end_lease, grant_leases, last_lease
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit
from fairway.store.tokens import Role, create_token
from tests.service.standing_in import StandIn

_SPEC = {"run": ["true"], "resources": {"accelerators": "v100"}}
_PART = 500


def fill(store: Store, workers: int, jobs: int) -> list[str]:
    """Jobs of four teams; as many as there are workers run."""
    names: list[str] = []
    for begin in range(0, jobs, _PART):
        given = [
            Submission(spec=_SPEC, name=f"train-{number}", team=f"team-{number % 4}", steps=1000.0)
            for number in range(begin, min(begin + _PART, jobs))
        ]
        names += [one.id for one in store.write(submit, given, at=time.time())]
    grants = [Grant(number + 1, (names[number],), "v100", (number,), time.time() + 1e6) for number in range(workers)]
    store.write(grant_leases, grants, at=time.time())
    store.write(run_jobs, {grant.jobs[0]: grant.lease for grant in grants}, at=time.time())
    return names


def changing(store: Store, names: list[str], workers: int, stop: Event) -> None:
    """Twice a second, a job is put back into the queue, and runs again on the same worker under a new lease."""
    held = {number: number + 1 for number in range(workers)}
    number = 0
    while not stop.wait(0.5):
        lease, job = store.read(last_lease) + 1, names[number]
        store.write(change_job, job, JobState.QUEUED, at=time.time())
        store.write(end_lease, held[number], at=time.time(), reason="for the benchmark")
        store.write(grant_leases, [Grant(lease, (job,), "v100", (number,), time.time() + 1e6)], at=time.time())
        store.write(change_job, job, JobState.RUNNING, at=time.time(), lease=lease)
        held[number] = lease
        number = (number + 1) % workers


def until_input_ends(stop: Event, server: ServiceServer) -> None:
    sys.stdin.read()
    stop.set()
    server.stop()


def main() -> None:
    """Serve until the input ends; says the address and the token in one line."""
    directory, workers, jobs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with open_store(str(directory / "store")) as store:
        scheduler = StandIn(directory, store, f"v100={workers}", idle=True)
        names = fill(store, workers, jobs)
        secret, _ = store.write(create_token, Role.ADMIN, at=time.time(), name="benchmark")
        server = ServiceServer(scheduler, "127.0.0.1", 0, ready=lambda at: print(at, secret, names[-1], flush=True))
        stop = Event()
        Thread(target=changing, args=(store, names, workers, stop), daemon=True).start()
        Thread(target=until_input_ends, args=(stop, server), daemon=True).start()
        server.run()


if __name__ == "__main__":
    main()
