"""Devices in simulations that are cut as real ones: instances of MIG, parts under MPS, slices of models."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fairway.cli.simulate.serving_values import sharing_of
from fairway.configure.slices.layouts import layouts_by_counts
from fairway.configure.slices.mig import A100_40GB
from fairway.errors import InputError
from fairway.report.serving.record import ServingRecord
from fairway.sim.arrivals import uniform
from fairway.sim.failures import Failure
from fairway.sim.scenario import DeviceSharing
from fairway.sim.scenario_file import parse_scenario
from fairway.sim.serving import ServingOptions, simulate_serving
from fairway.sim.serving_workload import EsgApps

MIG, MPS = DeviceSharing(A100_40GB), DeviceSharing(slowdown=0.3)


def _run(scheduler: str, sharing: DeviceSharing | None = None, **options: object) -> ServingRecord:
    apps = EsgApps("surge", "relaxed", seconds=1.5, workers=4, sharing=sharing or DeviceSharing())
    scenario = apps.make_scenario()
    return simulate_serving(
        scenario,
        apps.make_arrivals(scenario, 1),
        scheduler,
        ServingOptions(noise=0.08, keep_runs=True, **options),  # type: ignore[arg-type]
    )


def _together(record: ServingRecord) -> set[tuple[int, ...]]:
    """The sizes of the tasks that ran on one worker at one moment."""
    runs = record.runs
    first = np.flatnonzero(runs.member == 0)
    found = set()
    for worker in range(4):
        own = first[runs.worker[first] == worker]
        for moment in runs.start[own]:
            now = own[(runs.start[own] <= moment) & (runs.end[own] > moment)]
            found.add(tuple(sorted(runs.gpu[now].tolist())))
    return found


def _legal(sizes: tuple[int, ...]) -> bool:
    computes = [profile.compute for profile in A100_40GB.profiles]
    for counts in layouts_by_counts(A100_40GB):
        there: Counter[int] = Counter()
        for compute, count in zip(computes, counts, strict=True):
            there[compute] += count
        if Counter(sizes) <= there:
            return True
    return False


@pytest.mark.parametrize("scheduler", ["esg", "front", "infless", "esg+compass"])
def test_under_mig_what_runs_on_a_worker_is_a_layout_of_the_tables(scheduler: str) -> None:
    together = _together(_run(scheduler, MIG))
    assert len(together) > 1
    assert all(map(_legal, together)), [sizes for sizes in together if not _legal(sizes)]


def test_without_mig_sizes_are_taken_that_no_layout_has() -> None:
    assert not all(map(_legal, _together(_run("esg"))))


def test_under_mps_tasks_take_longer_beside_others_and_never_shorter() -> None:
    alone, shared = _run("esg:margin=0.1"), _run("esg:margin=0.1", MPS)
    seconds = [float((each.runs.end - each.runs.start).mean()) for each in (alone, shared)]
    assert seconds[1] > 1.02 * seconds[0]
    assert np.isfinite(shared.runs.end).all()
    assert shared.requests.cost is not None
    assert alone.requests.cost is not None
    assert shared.requests.cost.sum() > alone.requests.cost.sum(), (
        "the time in which a task is slowed down is paid, too"
    )


def test_without_slowdown_mps_is_any_number_of_slices() -> None:
    first, second = _run("esg"), _run("esg", DeviceSharing(slowdown=1e-12))
    assert second.requests.finish == pytest.approx(first.requests.finish, abs=1e-6)


def test_a_placer_alone_runs_with_both() -> None:
    for sharing in (MIG, MPS):
        assert np.isfinite(_run("compass", sharing).requests.finish).all()


def test_failures_cannot_cut_runs_short_that_slow_each_other_down() -> None:
    with pytest.raises(InputError, match="slow each other down"):
        _run("compass", MPS, failures=(Failure(0, 0.5),))


@pytest.mark.parametrize("text", ["mog", "mps", "mps:x", "mps:-1", "mig:1", "any:2", "mps:inf"])
def test_ways_of_sharing_that_there_are_not_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=rf"--slices: '{text}' given, expected any, mig, or mps"):
        sharing_of(text)


def test_ways_of_sharing_are_read() -> None:
    assert (sharing_of("any"), sharing_of("mig"), sharing_of("mps:0.3")) == (DeviceSharing(), MIG, MPS)
    with pytest.raises(InputError, match="share nothing"):
        DeviceSharing(A100_40GB, 0.1)


SCENARIO = """
models: {small: {bytes: 1000}, large: {bytes: 1000}}
workflows:
  one: {stages: [{name: a, model: small, seconds: {cpu: 0.1}}]}
  two: {stages: [{name: b, model: large, seconds: {cpu: 0.3, cpu@0.75: 0.36}}]}
workers: [{name: w, memory_bytes: 10000, accelerator: cpu}]
slices: {small: 0.25, large: 0.75}
"""


@pytest.mark.parametrize("scheduler", ["compass", "front"])
def test_models_with_slices_run_beside_each_other_at_the_pace_of_their_slices(scheduler: str) -> None:
    scenario = parse_scenario(SCENARIO, "s")
    record = simulate_serving(
        scenario, uniform(6, 0.5, np.ones(2), 0), scheduler, ServingOptions(discard=0.0, keep_runs=True)
    )
    seconds = record.runs.end - record.runs.start
    workflow = record.requests.workflow[record.runs.request]
    assert seconds == pytest.approx(np.where(workflow == 0, 0.4, 0.36))
    assert set(zip(workflow.tolist(), record.runs.gpu.tolist(), strict=True)) == {(0, 250), (1, 750)}


@pytest.mark.parametrize(
    ("slices", "words"),
    [
        ("{smal: 0.25}", "slices: no model 'smal'"),
        ("{small: 2}", "slices: small: a part of 2 given, which no worker has"),
        ("{small: 20MB}", "slices: small: 20MB of memory given, but a worker has"),
        ("{small: '0.5:10B'}", "slices: small: 1e-05 MB given, but the model alone needs"),
        ("3", "slices"),
    ],
)
def test_slices_of_a_scenario_that_cannot_be_are_refused_in_one_line(slices: str, words: str) -> None:
    text = SCENARIO.replace("{small: 0.25, large: 0.75}", slices)
    with pytest.raises(InputError) as refused:
        parse_scenario(text, "s")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_models_of_a_scenario_take_longer_beside_others_as_measured() -> None:
    scenario = parse_scenario(SCENARIO + "interference: {small: {large: 1.5}, large: {small: 1.0}}", "s")
    record = simulate_serving(
        scenario, uniform(40, 10.0, np.ones(2), 0), "compass", ServingOptions(discard=0.0, keep_runs=True)
    )
    seconds, workflow = record.runs.end - record.runs.start, record.requests.workflow[record.runs.request]
    assert seconds[workflow == 1] == pytest.approx(0.36)
    assert seconds[workflow == 0].max() == pytest.approx(0.6, rel=1e-3), "all of the time beside the other"
    with pytest.raises(InputError, match="interference: no model 'smal'"):
        parse_scenario(SCENARIO + "interference: {smal: {large: 1.5}}", "s")
