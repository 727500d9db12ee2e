"""Measuring an application: in real processes, with models whose sizes and times are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairway import ConfigurationProblem, InputError, configure, load_application
from fairway.configure.slices.parts import Slice
from fairway.live.machine.containment import Containment
from fairway.live.serving.application.configurations import configured
from fairway.live.serving.application.measurements import MeasuredApplication, profile_text
from fairway.live.serving.application.profiling import ProfileOptions, Profiler
from fairway.live.serving.application.samples import samples_of
from fairway.sim.scenario_file import parse_scenario
from tests.live.serving.authored import LARGE, SMALL

HERE = "tests.live.serving.authored"
BIG, LITTLE = f"table-{LARGE}", f"table-{SMALL}"


@pytest.fixture(scope="module")
def measured() -> MeasuredApplication:
    told: list[tuple[int, int]] = []
    profiler = Profiler(
        f"{HERE}:tables", ProfileOptions((1, 4), (1, 2), repeats=3), lambda done, total, _: told.append((done, total))
    )
    samples = {name: samples_of(served) for name, served in profiler.application.workflows.items()}
    result = profiler.measure(samples)
    assert told[0] == (0, 9)
    assert told[-1] == (9, 9)
    return result


def test_models_need_the_bytes_that_they_hold_and_give_them_back(measured: MeasuredApplication) -> None:
    for name, size in ((BIG, LARGE), (LITTLE, SMALL)):
        model = measured.models[name]
        assert model.bytes == pytest.approx(size, rel=0.1)
        assert model.load_seconds >= 0.02
        assert model.left_bytes < 0.1 * size


def test_stages_take_the_time_that_they_take_by_batch_and_threads(measured: MeasuredApplication) -> None:
    stages = measured.stages["tables"]
    assert set(stages["Table"].seconds) == {1, 2}
    for times in stages["Table"].seconds.values():
        assert 0.002 <= times[1] <= times[4]
        assert times[4] >= 0.008
    assert stages["halve"].seconds[1][1] < 0.002
    assert 0 < stages["Both"].output_bytes < 200
    assert 0 < measured.input_bytes["tables"] < 200


def test_the_profile_is_read_by_serving_simulation_and_configuration(
    measured: MeasuredApplication, tmp_path: Path
) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(profile_text(measured.document(workers=3, memory_bytes=50_000_000), "about"))
    served = load_application(f"{HERE}:tables", profile=path).workflows["tables"]
    assert served.workflow.models[BIG].bytes == measured.models[BIG].bytes
    table = served.workflow.stages[served.workflow.number("Table")]
    assert table.seconds_on("cpu-2", 4) == pytest.approx(measured.stages["tables"]["Table"].seconds[2][4], rel=1e-3)

    scenario = parse_scenario(path.read_text(), str(path))
    assert [worker.memory_bytes for worker in scenario.workers] == [50_000_000] * 3
    assert len({worker.host for worker in scenario.workers}) == 1
    assert scenario.slo_seconds == {"tables": 1.0}
    fleet = scenario.fleet()
    assert fleet.fetch_seconds.tolist() == pytest.approx(
        [measured.models[model.name].load_seconds for model in fleet.models], rel=1e-3
    )

    application = configured(served)
    assert {tuple(each) for each in application.profiles[1].configurations()} == {
        (batch, cpu, 0) for batch in (1, 4) for cpu in (1, 2)
    }
    answer = configure("front", ConfigurationProblem(application))
    assert answer.candidates[0].seconds <= 1.0


def test_a_stage_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failing_app.py").write_text(
        "import os, fairway\n"
        "@fairway.stage\ndef fail(x):\n    raise ValueError('no such thing')\n"
        "@fairway.stage\ndef die(x):\n    os._exit(7)\n"
        "@fairway.workflow\ndef fails(x): return fail(x)\n"
        "@fairway.workflow\ndef dies(x): return die(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="fails: samples: ValueError: no such thing; it must run before"):
        Profiler("failing_app:fails").measure({"fails": [{"x": 1}]})
    with pytest.raises(InputError, match="dies: samples: the process that measures ended with status 7"):
        Profiler("failing_app:dies").measure({"dies": [{"x": 1}]})


def test_samples_come_from_a_file_a_function_or_the_workflow(tmp_path: Path) -> None:
    tables = load_application(f"{HERE}:tables", memory_needed=False).workflows["tables"]
    spell = load_application(f"{HERE}:spell").workflows["spell"]
    assert samples_of(tables) == [{"number": 3}, {"number": 5.5}]
    assert samples_of(tables, path=f"{HERE}:numbers") == [{"number": 3}, {"number": 5.5}]
    file = tmp_path / "inputs.json"
    file.write_text(json.dumps([{"number": 1}, {"number": 2}]))
    assert samples_of(tables, file=file) == [{"number": 1}, {"number": 2}]
    plain = tmp_path / "text.txt"
    plain.write_text("words")
    assert samples_of(spell, file=plain) == [{"text": "words"}]
    for given, message in (('{"numbr": 1}', "no input 'numbr'"), ("[]", "no inputs"), ("{", "not valid JSON")):
        file.write_text(given)
        with pytest.raises(InputError, match=message):
            samples_of(tables, file=file)
    with pytest.raises(InputError, match="workflow 'spell': what should it be measured with"):
        samples_of(spell)
    with pytest.raises(InputError, match="7 given, expected a function"):
        samples_of(spell, path=f"{HERE}:not_a_workflow")


@pytest.mark.parametrize("options", [{"batches": (0, 1)}, {"threads": ()}, {"repeats": 0}, {"batches": (2, 2)}])
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match="expected different whole numbers of at least 1"):
        ProfileOptions(**options)  # type: ignore[arg-type]


SLICED = "tests.live.serving.sliced:small"


@pytest.mark.skipif("cpu" not in Containment.enforced_here(), reason="CPU time cannot be bounded here")
def test_a_stage_is_measured_on_parts_of_a_worker_that_it_is_held_to(tmp_path: Path) -> None:
    """It needs 20 ms of a CPU, so 80 ms of a quarter of one; how much more, a busy machine decides."""
    profiler = Profiler(SLICED, ProfileOptions((1,), repeats=2, parts=(Slice(250), Slice(1000))))
    assert profiler.total == 4
    measured = profiler.measure({"small": [{"seconds": 0.02}]})
    found = measured.stages["small"]["Small"].on_parts
    assert found[250][1] >= 0.07
    assert found[1000][1] >= 0.0199
    path = tmp_path / "profile.yaml"
    path.write_text(profile_text(measured.document(), "about"))
    (stage,) = load_application(SLICED, profile=path).workflows["small"].workflow.stages
    assert stage.seconds_on("cpu@0.25") == pytest.approx(found[250][1], rel=1e-3)
    assert parse_scenario(path.read_text(), "profile").workflows[0].stages[0].seconds_on("cpu@0.25") > 0.07
    assert configured(load_application(SLICED, profile=path).workflows["small"], 1.0).profiles[0].cpu.tolist() == [1]


def test_pairs_of_models_are_measured_beside_each_other(tmp_path: Path) -> None:
    profiler = Profiler(
        "tests.live.serving.sliced:TWO", ProfileOptions((1,), repeats=1, parts=(Slice(400),), pairs=True)
    )
    told: list[tuple[int, int]] = []
    profiler.progress = lambda done, total, _: told.append((done, total))
    measured = profiler.measure({name: [{"seconds": 0.005}] for name in ("small", "large")})
    assert told[-1] == (profiler.total, profiler.total)
    assert {name: set(beside) for name, beside in measured.pairs.items()} == {"small": {"large"}, "large": {"small"}}
    assert all(factor > 0.2 for beside in measured.pairs.values() for factor in beside.values())
    scenario = parse_scenario(profile_text(measured.document(), "about"), "profile")
    assert scenario.sharing.pairs["small", "large"] == pytest.approx(measured.pairs["small"]["large"], rel=1e-3)
    with pytest.raises(InputError, match="--pairs: given without a part"):
        ProfileOptions(pairs=True)


def test_where_nothing_holds_a_stage_to_its_part_it_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Containment, "found", lambda _: Containment(enforced=frozenset({"memory"})))
    profiler = Profiler(SLICED, ProfileOptions((1,), repeats=1, parts=(Slice(500),)))
    with pytest.raises(InputError, match="--slices: no control group can be bounded here"):
        profiler.measure({"small": [{"seconds": 0.001}]})
