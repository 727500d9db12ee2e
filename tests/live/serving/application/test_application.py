"""Applications by name: what is found, what a profile adds, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway import InputError, StageError, load_application
from fairway.live.serving.application.definition import accelerator_of
from fairway.workflows import Arguments
from tests.live.serving.authored import LARGE, SMALL

HERE = "tests.live.serving.authored"
BIG, LITTLE = f"table-{LARGE}", f"table-{SMALL}"

PROFILE = f"""
models:
  {BIG}: {{bytes: 49000000, load_seconds: 0.03}}
  {LITTLE}: {{bytes: 17000000, load_seconds: 0.02}}
workflows:
  tables:
    stages:
      - {{name: halve, seconds: {{cpu: {{1: 0.001, 2: 0.0015}}, cpu-2: 0.0008}}, input_bytes: 12, output_bytes: 21}}
      - {{name: Table, model: {BIG}, seconds: 0.002, output_bytes: 21}}
      - {{name: Table-2, model: {LITTLE}, seconds: 0.002, output_bytes: 21}}
      - {{name: Both, seconds: 0.0001, output_bytes: 50}}
    edges: [[halve, Table], [halve, Table-2], [Table, Both], [Table-2, Both]]
    slo_seconds: 9
  small:
    stages: [{{name: Table, model: {LITTLE}, seconds: 0.002}}]
    slo_seconds: 0.5
workers: [{{name: worker, memory_bytes: 50000000, accelerator: cpu}}]
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "profile.yaml"
    path.write_text(PROFILE)
    return path


def test_a_workflow_is_found_by_module_and_name() -> None:
    application = load_application(f"{HERE}:tables", memory_needed=False)
    assert (application.name, list(application.workflows)) == ("authored", ["tables"])
    assert set(application.models) == {BIG, LITTLE}
    served = application.workflows["tables"]
    assert (served.inputs, served.slo_seconds, served.input_types) == (("number",), 1.0, {"number": float})
    names = [stage.name for stage in served.workflow.stages]
    assert names == ["halve", "Table", "Table-2", "Both"]
    assert [served.model_of(number) for number in range(4)] == [None, BIG, LITTLE, None]
    assert [served.takes_input(number) for number in range(4)] == [True, False, False, True]
    assert served.exits == (3,)


def test_stages_run_by_number_on_what_the_loaders_make() -> None:
    application = load_application(f"{HERE}:tables", memory_needed=False)
    served = application.workflows["tables"]
    models = {name: entry.loader() for name, entry in application.models.items()}
    payload = served.payload({"number": 4})
    outputs: dict[int, object] = {}
    for stage in range(4):
        name = served.model_of(stage)
        arguments = served.arguments(stage, payload, outputs)
        (outputs[stage],) = served.run(stage, None if name is None else models[name], [arguments])
    assert served.reply(outputs) == [3.0, 3.0, 4]
    with pytest.raises(StageError):
        load_application(f"{HERE}:spell").workflows["spell"].run(0, None, [Arguments(("a",))] * 2)


def test_several_workflows_share_their_models_and_a_module_stands_for_all(tmp_path: Path) -> None:
    application = load_application(f"{HERE}:several", memory_needed=False)
    assert list(application.workflows) == ["tables", "small"]
    assert set(application.models) == {BIG, LITTLE}
    module = tmp_path / "whole_module_app.py"
    module.write_text(f"from {HERE} import spell, tables\nagain = tables\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        assert list(load_application("whole_module_app", memory_needed=False).workflows) == ["spell", "tables"]


def test_a_profile_says_how_long_stages_take_and_what_models_need(profile: Path) -> None:
    application = load_application(f"{HERE}:several", profile=profile)
    big = application.models[BIG]
    assert (big.name, big.bytes, big.load_seconds) == (BIG, 49_000_000, 0.03)
    tables, small = application.workflows["tables"], application.workflows["small"]
    assert tables.slo_seconds == 1.0, "the author's own SLO stays"
    assert small.slo_seconds == 0.5, "where there is none, that of the profile counts"
    halve = tables.workflow.stages[0]
    assert (halve.seconds_on(accelerator_of(1), 2), halve.seconds_on(accelerator_of(2))) == (0.0015, 0.0008)
    assert tables.workflow.input_bytes[0] == 12
    assert tables.workflow.models[LITTLE].load_seconds == 0.02


def test_a_profile_of_another_workflow_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(PROFILE.replace("[Table, Both], ", ""))
    with pytest.raises(InputError, match="'tables' had other stages or edges when it was measured; measure it again"):
        load_application(f"{HERE}:tables", profile=path)
    path.write_text(PROFILE.replace("  tables:", "  charts:"))
    with pytest.raises(InputError, match="has no workflow 'tables'"):
        load_application(f"{HERE}:tables", profile=path)
    path.write_text(PROFILE.replace("bytes: 49000000", "bytes: -1"))
    with pytest.raises(InputError, match=rf"models.{BIG}.bytes: -1 given"):
        load_application(f"{HERE}:tables", profile=path)


BROKEN = {
    "broken_syntax": "def f(:\n",
    "broken_import": "import no_such_library_at_all\n",
    "broken_raise": "raise RuntimeError('not today')\n",
    "without_workflow": "x = 1\n",
    "twice": f"import fairway\nfrom {HERE} import Spell\n"
    "a = fairway.workflow(name='w')(lambda x: Spell()(x))\nb = fairway.workflow(name='w')(lambda y: Spell()(y))\n",
}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module_here:w", "no module 'no_such_module_here'; start where it lies, or install it"),
        (f"{HERE}:tabels", "has no 'tabels', did you mean 'tables'"),
        (f"{HERE}:not_a_workflow", "int given, expected a function decorated with @fairway.workflow"),
        (f"{HERE}:tables", rf"how much memory does model '{BIG}' of stage 'Table' need\? Declare it"),
        (f"{HERE}:only_simulated", "stage 'simulated' is a function, which loads no model, but names 'opt'"),
        ("examples/app.py:read", "not an import path; expected module:name, as in 'examples.app:read'"),
        ("a b:c", "not an import path"),
        ("broken_syntax:w", r"'broken_syntax' cannot be imported: .* \(.*broken_syntax.py, line 1\)"),
        ("broken_import:w", "cannot be imported: ModuleNotFoundError: No module named 'no_such_library_at_all'"),
        ("broken_raise:w", r"cannot be imported: RuntimeError: not today \(.*broken_raise.py, line 1\)"),
        ("without_workflow", "has no workflow; decorate a function with @fairway.workflow"),
        ("twice", "two workflows are called 'w'"),
        ("no-such-file.yaml", "no-such-file.yaml: cannot be read: No such file"),
    ],
)
def test_what_is_no_application_is_refused_in_one_line(
    target: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in BROKEN.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=message) as error:
        load_application(target)
    assert "\n" not in str(error.value)
