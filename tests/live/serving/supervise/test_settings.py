"""How an application is served: numbers of processes, what is refused, and that workers read what was written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairway.errors import InputError
from fairway.live.backend.logs import LEAST_LOG_BYTES
from fairway.live.serving.supervise.settings import ServingSettings

HERE = Path("/run/app")
APPLICATION = "tests.live.serving.served:fork"


def settings(**fields: Any) -> ServingSettings:
    return replace(ServingSettings(APPLICATION, HERE, HERE / "memory", has_planner=False), **fields)


def refusal(**fields: Any) -> str:
    with pytest.raises(InputError) as caught:
        settings(**fields)
    return str(caught.value)


def test_the_planner_is_one_process_more_and_takes_all_requests() -> None:
    alone, planned = settings(workers=3), settings(workers=3, has_planner=True)
    assert (alone.planner, list(alone.doors), list(alone.processes)) == (None, [0, 1, 2], [0, 1, 2])
    assert (planned.planner, list(planned.doors), list(planned.processes)) == (3, [3], [0, 1, 2, 3])
    assert [planned.name_of(number) for number in (0, 3)] == ["worker-0", "planner"]
    assert alone.name_of(3) == "worker-3"
    assert planned.socket(3) == HERE / "planner.sock"
    assert planned.log(2) == HERE / "worker-2.log"
    assert planned.table == HERE / "memory" / "table"


@pytest.mark.parametrize(
    ("scheduler", "centralised"), [("compass", False), ("compass:centralised", True), ("esg", True)]
)
def test_a_scheduler_that_plans_in_one_place_has_a_planner(scheduler: str, centralised: bool) -> None:
    assert settings(scheduler=scheduler, has_planner=None).has_planner is centralised


def test_what_cannot_be_is_refused_with_what_was_given() -> None:
    assert refusal(workers=0) == "workers: 0 given, expected a whole number of at least 1"
    assert refusal(workers=2, devices=("0",)) == "devices: 1 given for 2 workers, expected one for each"
    assert refusal(log_bytes=LEAST_LOG_BYTES - 1).startswith(f"log limit: {LEAST_LOG_BYTES - 1} bytes given")
    for given in (0.0, -1.0, float("inf"), float("nan")):
        assert refusal(memory_bytes=given) == f"memory: {given} given, expected bytes above 0"
        assert refusal(stage_limit_seconds=given) == f"stage-limit: {given} s given, expected more than 0 s"
        assert refusal(load_limit_seconds=given) == f"load-limit: {given} s given, expected more than 0 s"


def test_the_least_that_can_be_is_taken() -> None:
    least = settings(workers=1, devices=("7",), log_bytes=LEAST_LOG_BYTES, memory_bytes=1.0, stage_limit_seconds=1e-3)
    assert (least.emulated, settings().emulated) == (False, True)


def test_a_worker_reads_what_was_written(tmp_path: Path) -> None:
    full = settings(
        profile=Path("p.yaml"), pinned=("a", "b"), devices=("0", "1"), wire_certificate=Path("c"), wire_key=Path("k"),
        memory_bytes=5e9, traces="http://here:4318", slo_seconds=0.5, parent_owns_memory=False, seed=7,
    )  # fmt: skip
    for each in (full, settings()):
        each.save(tmp_path / "settings.json")
        assert ServingSettings.read(tmp_path / "settings.json") == each


def test_memory_is_the_budget_or_room_for_all_models() -> None:
    application = settings().application()
    everything = sum(model.bytes for model in application.models.values())
    assert everything > 0
    assert settings(workers=3).fleet(application).memory.tolist() == [everything] * 3
    assert settings(memory_bytes=1e10).fleet(application).memory.tolist() == [1e10] * 2


def test_a_load_that_was_measured_takes_as_long_as_that_and_others_what_their_bytes_take() -> None:
    application = settings().application()
    fleet = settings().fleet(application)
    slow = {
        name: replace(served, model=replace(served.model, load_seconds=3.25))
        for name, served in application.models.items()
    }
    measured = settings().fleet(replace(application, models=slow))
    assert measured.fetch_seconds.tolist() == [3.25] * len(slow)
    assert all(seconds != 3.25 for seconds in fleet.fetch_seconds.tolist())


def test_pinned_models_have_to_be_there_and_leave_room_for_the_largest_other_one() -> None:
    application = settings().application()
    sizes = {name: model.bytes for name, model in application.models.items()}
    fleet = settings().fleet(application)
    with pytest.raises(InputError, match="pinned: no model 'none'"):
        settings(pinned=("none",)).graphs(application, fleet)
    name = min(sizes, key=lambda each: sizes[each])
    largest = max((size for each, size in sizes.items() if each != name), default=0)
    enough = float(sizes[name] + largest)
    settings(pinned=(name, name), memory_bytes=enough).graphs(application, fleet)
    settings(pinned=(name,)).graphs(application, fleet)
    settings(memory_bytes=1.0).graphs(application, fleet)
    with pytest.raises(InputError, match=f"pinned: {name} need .* MB, which leaves too little of"):
        settings(pinned=(name,), memory_bytes=enough - 1.0).graphs(application, fleet)


def test_an_slo_that_is_given_is_for_workflows_without_one() -> None:
    (own,) = settings().application().workflows.values()
    (given,) = settings(slo_seconds=0.25).application().workflows.values()
    assert given.slo_seconds == (0.25 if own.slo_seconds is None else own.slo_seconds)
