"""Tasks of requests with less work left go first, but nobody waits forever for that."""

from __future__ import annotations

import pytest

from fairway.engine.serving.messages import RequestArrived, Run, TaskDone
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload
from tests.engine.serving.test_engine import Single, chain, only

SHORT, MIDDLE, LONG = (chain(None, seconds=seconds) for seconds in (1.0, 2.0, 5.0))


def order(scheduler: str, *arrivals: tuple[float, int]) -> list[int]:
    """The keys of requests in the order in which a worker runs them: given when each comes, and for which workflow."""
    cluster = Single(scheduler, workers=1)
    graphs = [cluster.graph(workflow) for workflow in (SHORT, MIDDLE, LONG)]
    waiting, ran = list(enumerate(arrivals)), []
    run: Run | None = None
    end = 0.0
    while waiting or run is not None:
        if run is not None and (not waiting or end <= waiting[0][1][0]):
            commands = cluster.tell(TaskDone(run.run), at=end)
            run = None
        else:
            key, (moment, workflow) = waiting.pop(0)
            commands = cluster.tell(RequestArrived(key, graphs[workflow]), at=moment)
        if any(isinstance(command, Run) for command in commands):
            run = only(commands, Run)
            end = cluster.now + run.seconds
            ran.append(run.flow.request.key)
    return ran


def test_who_has_less_left_goes_first() -> None:
    together = [(0.0, 1), (0.1, 2), (0.1, 0), (0.1, 1)]
    assert order("compass", *together) == [0, 2, 3, 1]
    for scheduler in ("compass:patience=0", "compass:as-published", "jit", "heft", "hash"):
        assert order(scheduler, *together) == [0, 1, 2, 3], scheduler


def test_a_task_waits_for_those_that_come_within_its_patience_and_no_longer() -> None:
    stream = [(0.0, 2), (0.0, 2), *((float(moment), 0) for moment in range(1, 30))]
    ran = order("compass", *stream)  # one of five seconds beside one of one second in every second: too much
    passed = ran.index(1) - 1
    assert passed == 7, "those of the first eight seconds: two times the four that it takes longer than they do"
    later = [key for key in ran if key > 1]
    assert later == sorted(later), "equals keep their order"


def test_what_is_left_of_a_request_counts_not_only_the_task() -> None:
    cluster = Single(workers=1)
    many, one = cluster.graph(chain(None, None, None)), cluster.graph(chain(None, seconds=1.5))
    run = only(cluster.tell(RequestArrived(0, one)), Run)
    cluster.tell(RequestArrived(1, many))
    cluster.tell(RequestArrived(2, one))
    assert only(cluster.tell(TaskDone(run.run), at=1.5), Run).flow.request.key == 2


@pytest.mark.parametrize(("workers", "rate"), [(5, 3.0), (60, 40.0)])
def test_requests_are_answered_sooner(workers: int, rate: float) -> None:
    workload = ServingWorkload("compass-edge", "clients", workers, 800, rate)

    def mean(scheduler: str) -> float:
        record = ServingRun(workload, scheduler, ServingOptions(seed=3))()
        return float((record.requests.finish - record.requests.arrival).mean())

    assert mean("compass") < 0.99 * mean("compass:patience=0")
