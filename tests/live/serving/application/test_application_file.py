"""Applications from YAML: the same as from Python, and one line for whatever is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway import InputError, load_application, run_locally
from fairway.live.serving.application.application_file import parse_application
from tests.live.serving.authored import LARGE, SMALL

HERE = "tests.live.serving.authored"
TABLES = f"""
name: tables
models:
  big: {{memory: 48MB}}
  little: {{memory: 16MB}}
workflows:
  tables:
    inputs: {{number: float}}
    slo: 1s
    samples: {HERE}:numbers
    stages:
      - {{name: halve, function: "{HERE}:halve"}}
      - {{name: large, class: "{HERE}:Table", with: {{size: {LARGE}}}, model: big, takes: [halve], seconds: 0.002}}
      - {{name: small, class: "{HERE}:Table", with: {{size: {SMALL}}}, model: little, takes: [halve], output_bytes: 21}}
      - {{name: both, class: "{HERE}:Both", takes: {{left: large, right: small, numbers: number}}}}
    returns: both
"""


def test_it_is_the_application_that_python_makes(tmp_path: Path) -> None:
    path = tmp_path / "tables.yaml"
    path.write_text(TABLES)
    read, python = load_application(str(path)), load_application(f"{HERE}:tables", memory_needed=False)
    mine, theirs = read.workflows["tables"], python.workflows["tables"]
    names = {"Table": "large", "Table-2": "small", "Both": "both", "halve": "halve"}
    assert set(mine.workflow.edges) == {(names[one], names[two]) for one, two in theirs.workflow.edges}
    assert (mine.inputs, mine.input_types, mine.slo_seconds) == (theirs.inputs, theirs.input_types, theirs.slo_seconds)
    assert {name: model.bytes for name, model in read.models.items()} == {"big": 48_000_000, "little": 16_000_000}
    assert mine.workflow.stages[mine.workflow.number("large")].seconds_on("cpu") == 0.002
    assert mine.workflow.stages[mine.workflow.number("small")].output_bytes == 21
    assert mine.recording.samples is theirs.recording.samples
    assert run_locally(str(path), number=4) == run_locally(theirs, number=4) == [3.0, 3.0, 4]


def test_edges_say_what_is_taken_where_takes_does_not() -> None:
    text = f"""
workflows:
  w:
    inputs: [number]
    stages:
      - {{name: b, function: "{HERE}:halve"}}
      - {{name: a, function: "{HERE}:halve"}}
    edges: [[a, b]]
"""
    _, (recording,), _ = parse_application(text, "w.yaml")
    assert recording.stage_names == ("a", "b")
    assert run_locally(recording, number=8) == 2.0


def test_values_lists_and_several_results() -> None:
    text = """
workflows:
  w:
    inputs: {text: {type: str, default: abc}}
    stages:
      - {name: joined, function: "builtins:max", takes: [[text, {value: ab}]]}
      - {name: length, function: "builtins:len", takes: text}
    returns: {longest: joined, lengths: [length, length]}
"""
    _, (recording,), _ = parse_application(text, "w.yaml")
    assert run_locally(recording, text="zz") == {"longest": "zz", "lengths": [2, 2]}
    assert run_locally(recording) == {"longest": "abc", "lengths": [3, 3]}
    _, (recording,), _ = parse_application(text[: text.index("    returns")], "w.yaml")
    assert run_locally(recording) == {"joined": "abc", "length": 3}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("takes: [halve], seconds", "takes: [both], seconds", r"workflows.tables: edges: '.*' -> .* is a cycle"),
        (":Both", ":Bith", r"stages\[3\] \('both'\): .*has no 'Bith', did you mean 'Both'"),
        (f'"{HERE}:Both"', "no_such_module_here:Both", "no module 'no_such_module_here'"),
        (f'function: "{HERE}:halve"', f'class: "{HERE}:halve"', "StageFunction given, expected a class"),
        (f'function: "{HERE}:halve"', "seconds: 1", "expected either a class or a function"),
        ("numbers: number", "numbers: numbr", "takes 'numbr', which is neither an input nor a stage, did you mean"),
        ("size: 48", "sice: 48", "unexpected keyword argument|missing a required argument"),
        ("slo: 1s", "slo: fast", 'workflows.tables: slo: "fast" given, expected seconds'),
        ("memory: 48MB", "memory: big", 'models.big.memory: "big" given, expected bytes'),
        ("  big: {", "  bag: {memory: 1MB}\n  big: {", "models.bag: no stage has this model, did you mean 'big'"),
        ("returns: both", "returns: bath", "returns: there is no stage 'bath', did you mean 'both'"),
        ("name: small", "name: large", "'large' is also the name of"),
        ("name: halve", "name: number", "'number' is also the name of a stage"),
        ("number: float", "number: complex", 'inputs.number: "complex" given, expected a type'),
        ("model: little", "model: big", "both call their model 'big', but load it differently"),
        ("returns: both", "return: both", r"workflows.tables.return: no such field, did you mean 'returns'"),
        ("returns: both", "edges: [[halve, both]]", "the stage does not take 'halve'; add it to takes"),
        ("takes: {left: large", "takes: {left: 7", "7 given in takes, expected the name"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(old: str, new: str, message: str) -> None:
    assert old in TABLES
    with pytest.raises(InputError, match=message) as error:
        parse_application(TABLES.replace(old, new, 1), "tables.yaml")
    assert str(error.value).startswith("tables.yaml: ")
    assert "\n" not in str(error.value)
