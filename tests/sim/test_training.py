"""The training simulator: times worked out by hand, costs, windows, and that a run can be repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from fairway.cluster import Cluster
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.messages import Command, Event
from fairway.errors import InputError
from fairway.jobs import Entity, Job
from fairway.profiles import IsolatedRate, PairRate, ThroughputTable
from fairway.profiles.catalog import builtin
from fairway.report.training.record import Outcome, TrainingRecord
from fairway.sim.submissions import PriceChange, Submission, TrainingOptions
from fairway.sim.training import simulate_training
from fairway.sim.workload import Workload
from fairway.traces import read_openb_nodes
from fairway.traces.generate import generate
from fairway.traces.generate_options import parse_generate
from tests.engine.training.validated import validated_engines
from tests.figures import openb_nodes, openb_pods

ONE = Cluster({"v100": 1}, prices={"v100": 3.6})


@pytest.fixture(autouse=True, scope="module")
def _validated() -> Iterator[None]:
    with validated_engines():
        yield


def submission(name: str, arrival: float, steps: float, scale: int = 1, rate: float = 1.0) -> Submission:
    return Submission(arrival, Job(name, {"v100": rate}, scale_factor=scale, steps_left=steps))


def run(
    submissions: Iterable[Submission], cluster: Cluster = ONE, policy: str = "fifo", **options: object
) -> TrainingRecord:
    return simulate_training(submissions, cluster, policy, TrainingOptions(keep_leases=True, **options))  # type: ignore[arg-type]


def generated(text: str) -> Iterator[Submission]:
    table = builtin()
    for job in generate(parse_generate(text), table):
        assert job.job_type is not None
        yield Submission(job.arrival, table.job(job.id, job.job_type, job.scale_factor, steps_left=job.total_steps))


def test_first_in_first_out_on_one_worker() -> None:
    record = run([submission("a", 0.0, 500.0), submission("b", 100.0, 50.0)])
    assert record.jobs.finish.tolist() == pytest.approx([500.0, 550.0])
    assert record.jobs.start.tolist() == [0.0, 500.0]
    assert record.makespan_seconds == pytest.approx(550.0)
    assert record.busy_seconds.tolist() == pytest.approx([550.0])
    assert record.jobs.cost_dollars.tolist() == pytest.approx([0.5, 0.05])
    assert record.leases.job.tolist() == [0, 1]
    assert record.leases.steps.tolist() == pytest.approx([500.0, 50.0])
    assert record.leases.workers.tolist() == [0, 0]
    assert record.jobs.preemptions.tolist() == [0, 0]


def test_jobs_that_come_at_one_moment_arrive_together(monkeypatch: pytest.MonkeyPatch) -> None:
    handle, moments = TrainingEngine.handle, []

    def noted(engine: TrainingEngine, now: float, events: Sequence[Event]) -> list[Command]:
        moments.append((now, [type(event).__name__ for event in events]))
        return handle(engine, now, events)

    monkeypatch.setattr(TrainingEngine, "handle", noted)
    coming = [("a", 0.0), ("b", 0.0), ("c", 100.0), ("d", 100.0), ("e", 200.0)]
    record = run([submission(name, arrival, 10.0) for name, arrival in coming])
    assert [moment for moment in moments if "JobArrived" in moment[1]] == [
        (0.0, ["JobArrived"] * 2),
        (100.0, ["JobArrived"] * 2),
        (200.0, ["JobArrived"]),
    ]
    assert record.jobs.arrival.tolist() == [arrival for _, arrival in coming]
    assert record.jobs.finish.tolist() == pytest.approx([10.0, 20.0, 110.0, 120.0, 210.0])


def test_every_start_from_a_checkpoint_costs_the_restart_time() -> None:
    record = run([submission("a", 0.0, 500.0), submission("b", 0.0, 500.0)], restart_seconds=10.0)
    assert record.jobs.finish.tolist() == pytest.approx([510.0, 1020.0])
    shared = run(
        [submission("a", 0.0, 30_000.0), submission("b", 0.0, 30_000.0)],
        policy="max-min-fairness",
        restart_seconds=10.0,
    )
    assert shared.leases_granted > 4
    assert shared.makespan_seconds == pytest.approx(60_000.0 + 10.0 * shared.leases_granted)
    assert shared.jobs.preemptions.sum() == shared.leases_granted - 2


def test_costs_follow_prices_that_change_while_a_job_runs() -> None:
    record = run([submission("a", 0.0, 1000.0)], price_changes=(PriceChange(400.0, {"v100": 7.2}),))
    assert record.jobs.cost_dollars[0] == pytest.approx(0.4 + 2 * 0.6)


def test_two_jobs_that_share_pay_half_each() -> None:
    rows = (IsolatedRate("x", 1, "v100", 1.0),)
    table = ThroughputTable(rows, (PairRate("x", "x", 1, "v100", 0.8, 0.8),), source="test")
    jobs = [Submission(0.0, table.job(name, "x", steps_left=800.0)) for name in "ab"]
    record = simulate_training(
        jobs, ONE, "max-min-fairness:space-sharing", TrainingOptions(keep_leases=True), table=table
    )
    assert record.jobs.finish.tolist() == pytest.approx([1000.0, 1000.0])
    assert record.jobs.cost_dollars.tolist() == pytest.approx([0.5, 0.5])
    assert record.leases.partner.tolist()[0] == 1
    assert record.leases.partner_steps[0] == pytest.approx(800.0)


def test_a_job_that_can_never_run_is_reported_and_the_run_ends() -> None:
    record = run([submission("huge", 0.0, 1.0, scale=2), submission("a", 0.0, 100.0)])
    assert record.jobs.outcome.tolist() == [Outcome.UNRUNNABLE, Outcome.COMPLETED]
    assert np.isnan(record.jobs.finish[0])
    assert run([submission("huge", 5.0, 1.0, scale=2)]).jobs.outcome.tolist() == [Outcome.UNRUNNABLE]


def test_a_run_ends_when_the_jobs_of_its_window_have_ended_though_others_keep_coming() -> None:
    record = run(generated("rate=20,seed=1"), Cluster.parse("v100=20,p100=20,k80=20"), "fifo", window=(10, 20))
    counted = record.jobs.counted
    assert np.flatnonzero(counted).tolist() == list(range(10, 20))
    assert (record.jobs.outcome[counted] == Outcome.COMPLETED).all()
    assert record.makespan_seconds == record.jobs.finish[counted].max()
    assert len(record.jobs) > 20


def test_the_same_seed_gives_the_same_record() -> None:
    records = [
        run(islice(generated("rate=30,multi-gpu,seed=2"), 60), Cluster.parse("v100=8,p100=8,k80=8"), policy, seed=5)
        for policy in ("gandiva", "max-min-fairness")
        for _ in range(2)
    ]
    for first, second in (records[:2], records[2:]):
        assert first.jobs.finish.tobytes() == second.jobs.finish.tobytes()
        assert first.leases.workers.tobytes() == second.leases.workers.tobytes()
        assert first.timeline.busy.tobytes() == second.timeline.busy.tobytes()


def test_leases_add_up_to_the_work_of_every_job_and_no_worker_is_held_twice() -> None:
    record = run(
        islice(generated("rate=60,multi-gpu,seed=3"), 80), Cluster.parse("v100=8,p100=8,k80=8"), "max-min-fairness"
    )
    done = np.zeros(len(record.jobs))
    np.add.at(done, record.leases.job, record.leases.steps)
    total = [job.total_steps for job in islice(generate(parse_generate("rate=60,multi-gpu,seed=3"), builtin()), 80)]
    assert done.tolist() == pytest.approx(total)
    held: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for lease in range(len(record.leases)):
        for worker in record.leases.workers[record.leases.offset[lease] : record.leases.offset[lease + 1]].tolist():
            times = (float(record.leases.start[lease]), float(record.leases.end[lease]))
            held.setdefault((int(record.leases.accelerator[lease]), worker), []).append(times)
    for times in held.values():
        times.sort()
        assert all(before[1] <= after[0] + 1e-9 for before, after in pairwise(times))
    worked = (record.leases.end - record.leases.start) * np.diff(record.leases.offset)
    assert worked.sum() == pytest.approx(record.busy_seconds.sum())


def test_knowing_the_rates_beats_not_knowing_them() -> None:
    cluster = Cluster.parse("v100=6,p100=6,k80=6")
    means = [
        np.mean(record.jobs.finish - record.jobs.arrival)
        for policy in ("max-min-fairness:agnostic", "max-min-fairness")
        for record in [run(islice(generated("rate=2.4,seed=0"), 120), cluster, policy)]
    ]
    assert means[1] < 0.8 * means[0]


def test_jobs_whose_length_is_hidden_run_as_long_as_they_are_and_only_some_policies_can_do_without() -> None:
    coming = [submission("a", 0.0, 1000.0), submission("b", 10.0, 100.0)]
    known = run(coming, policy="max-min-fairness")
    hidden = run(coming, policy="max-min-fairness", hide_lengths=True)
    assert hidden.jobs.finish.tolist() == known.jobs.finish.tolist()
    # The long job is behind its equal share after a while, and the other has done less: both finish all they have.
    assert sorted(run(coming, policy="min-jct", hide_lengths=True).jobs.finish.tolist())[-1] == pytest.approx(1100.0)
    with pytest.raises(InputError, match="'a' has no steps_left, which policy 'makespan' needs"):
        run(coming, policy="makespan", hide_lengths=True)


def test_under_min_jct_a_team_has_its_part_of_the_cluster_whatever_the_prices() -> None:
    """Twelve short jobs of one team were here first; six long ones of another are due three quarters of the workers."""
    jobs = [("b", 10_000.0)] * 12 + [("a", 20_000.0)] * 6
    coming = [
        Submission(0.0, Job(f"{team}{number}", {"v100": 1.0}, steps_left=steps, entity=team))
        for number, (team, steps) in enumerate(jobs)
    ]
    four, teams = Cluster({"v100": 4}), {"a": Entity(weight=3.0), "b": Entity(weight=1.0)}
    in_teams, alike = (
        run(coming, four, "min-jct", entities=entities) for entities in (teams, {"a": Entity(), "b": Entity()})
    )
    done = [record.jobs.finish[12:].max() for record in (in_teams, alike)]
    assert done[0] < 6 * 20_000 / (0.9 * 3.0) + 4000.0
    assert done[1] > 1.1 * done[0]
    assert in_teams.makespan_seconds < 1.2 * 240_000 / 4


def test_a_round_of_no_length_is_refused() -> None:
    with pytest.raises(InputError, match="round_seconds"):
        run([submission("a", 0.0, 1.0)], round_seconds=0.0)


def check_pods_take_as_long_as_they_did(workload: Workload, tmp_path: Path, pods: int) -> None:
    node_list = tmp_path / "nodes.csv"
    node_list.write_text(openb_nodes())
    nodes = read_openb_nodes(node_list).cluster()
    record = simulate_training(workload.submissions(nodes), nodes, "fifo", TrainingOptions(round_seconds=3600.0))
    assert len(record.jobs) == pods
    assert (record.jobs.outcome == Outcome.COMPLETED).all()
    # There is always room, so every job takes as long as it did.
    expected = [s.job.steps_left for s in workload.submissions(nodes)]
    assert (record.jobs.finish - record.jobs.arrival).tolist() == pytest.approx(expected, abs=1e-3)


def test_every_tenth_of_the_published_pods_of_alibaba_runs_on_its_published_nodes(tmp_path: Path) -> None:
    pods = tmp_path / "pods.csv"
    pods.write_text(openb_pods())
    check_pods_take_as_long_as_they_did(Workload(trace=str(pods)), tmp_path, 618)


@pytest.mark.slow
def test_the_published_pods_of_alibaba_run_on_its_published_nodes(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    pods = shared_data("alibaba-2023/openb_pod_list_default.csv")
    check_pods_take_as_long_as_they_did(Workload(trace=str(pods)), tmp_path, 6203)
