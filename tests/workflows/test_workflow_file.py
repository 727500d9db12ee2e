"""Workflows from YAML and JSON: both give the same graph, and every mistake is one line that says where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import InputError, Workflow, parse_workflow, parse_workflows

YAML = """
name: assistant
models:
  reader: {bytes: 12e6}
  writer: {bytes: 6141853204}
stages:
  - {name: read, model: reader, seconds: {t4: 0.05, a100: {1: 0.02, 4: 0.05}}, input_bytes: 300000, output_bytes: 2048}
  - {name: write, models: [writer, reader], seconds: 1.5e-1}
  - {name: send, seconds: 0}
edges:
  - [read, write]
  - [write, send]
"""
JSON = json.dumps(
    {
        "name": "assistant",
        "models": {"reader": {"bytes": 12000000}, "writer": {"bytes": 6141853204.0}},
        "stages": [
            {
                "name": "read",
                "model": "reader",
                "seconds": {"t4": 0.05, "a100": {"1": 0.02, "4": 0.05}},
                "input_bytes": 300000,
                "output_bytes": 2048,
            },
            {"name": "write", "models": ["writer", "reader"], "seconds": 0.15, "model": None},
            {"name": "send", "seconds": 0},
        ],
        "edges": [["read", "write"], ["write", "send"]],
    }
)


def test_yaml_and_json_give_the_same_workflow() -> None:
    workflow = parse_workflow(YAML, "assistant.yaml")
    assert workflow == parse_workflow(JSON.encode(), "assistant.json")
    assert workflow.name == "assistant"
    assert workflow.models["reader"].bytes == 12_000_000
    assert workflow.stages[0].seconds_on("a100", 3) == 0.05
    assert workflow.stages[1].models == ("writer", "reader")
    assert workflow.successors == ((1,), (2,), ())


def test_several_workflows_share_their_models() -> None:
    text = """
models: {opt: {bytes: 10}}
workflows:
  answer: {stages: [{name: a, model: opt, seconds: 1}]}
  chat: {stages: [{name: a, model: opt, seconds: 2}, {name: b, seconds: 1}], edges: [[a, b]]}
"""
    workflows = parse_workflows(text, "two.yaml")
    assert {name: len(workflow) for name, workflow in workflows.items()} == {"answer": 1, "chat": 2}
    with pytest.raises(InputError, match=r"^two.yaml: workflows.chat.edges\[0\]: 'a' -> 'c' given"):
        parse_workflows(text.replace("[[a, b]]", "[[a, c]]"), "two.yaml")
    with pytest.raises(InputError, match=r"^two.yaml: workflows.chat.stages\[1\] \('b'\).seconds: -1 given"):
        parse_workflows(text.replace("name: b, seconds: 1", "name: b, seconds: -1"), "two.yaml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("input_bytes: 300000", "input_bytes: -3", "stages[0] ('read').input_bytes: -3 given, expected a whole number"),
        ("output_bytes: 2048", "output_bytes: 0.5", "stages[0] ('read').output_bytes: 0.5 given, expected a whole"),
        ("bytes: 12e6", "bytes: -1", "models.reader.bytes: -1 given, expected a whole number"),
        ("bytes: 12e6", "bytes: .nan", "models.reader.bytes: nan given"),
        ("bytes: 12e6", "bytes: 2024-01-01", 'models.reader.bytes: "2024-01-01" given'),
        ("bytes: 12e6", "byte: 1", "models.reader.bytes: missing"),
        ("seconds: 1.5e-1", "seconds: -2", "stages[1] ('write').seconds: -2 given, expected seconds >= 0"),
        ("seconds: 1.5e-1", 'seconds: "2"', "stages[1] ('write').seconds: \"2\" given, expected seconds >= 0"),
        (", seconds: 1.5e-1", "", "stages[1] ('write').seconds: missing, expected seconds >= 0"),
        ("seconds: 1.5e-1", "seconds: {}", "stages[1] ('write').seconds: no time on any accelerator given"),
        ("t4: 0.05", "t4: -0.05", "stages[0] ('read').seconds: -0.05 given for 't4'"),
        ("{1: 0.02, 4", "{0: 0.02, 4", "stages[0] ('read').seconds: \"0\" given as a batch size for 'a100'"),
        ("model: reader,", "model: raeder,", "stages[0] ('read').model: 'raeder' is not one of the models, did you"),
        ("model: reader,", "modle: reader,", "stages[0] ('read').modle: no such field, did you mean 'model'?"),
        ("[read, write]", "[read, print]", "edges[0]: 'read' -> 'print' given, but there is no stage 'print'"),
        ("[read, write]", "[read]", "edges[0]: a list of 1 given, expected two names of stages"),
        (
            "[write, send]",
            "[write, read]",
            "edges: 'read' -> 'write' -> 'read' is a cycle; take one of these edges out",
        ),
        ("name: send", "name: read", "stages[2].name: 'read' is also the name of stages[0]"),
        ("name: send", 'name: ""', "stages[2] ('').name: \"\" given, expected text of at least one character"),
        ("name: send, ", "", "stages[2].name: missing, expected text of at least one character; add it"),
        ("name: assistant", "name: a\nname: b", "line 2: 'name' given twice; keep one of them"),
        ("name: assistant", "name: &n a\nmore: *n", "an alias (*) given, expected the value itself"),
        ("edges:", "edges: [", "not valid YAML: "),
        ("name: assistant", "nmae: assistant", "nmae: no such field, did you mean 'name'?"),
    ],
)
def test_a_mistake_is_one_line_with_file_stage_and_fix(old: str, new: str, message: str) -> None:
    assert YAML.count(old) == 1
    with pytest.raises(InputError) as caught:
        parse_workflow(YAML.replace(old, new), "assistant.yaml")
    line = str(caught.value)
    assert line.startswith(f"assistant.yaml: {message}" if "(*)" not in message else "assistant.yaml: ")
    assert message in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty, expected an object"),
        ("[]", "the document: a list of 0 given, expected an object"),
        ("{", "not valid JSON: "),
        (b"\xff\xfe", "not text in UTF-8"),
        ("[" * 50_000, "nested too deeply"),
        ('{"stages": [{"name": "a", "name": "b", "seconds": 1}]}', "stages[0] ('b').name: given twice; keep one"),
        ('{"stages": []}', "stages: none given"),
    ],
)
def test_what_is_no_workflow_at_all_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_workflow(text, "w.json")
    assert message in str(caught.value)
    assert str(caught.value).startswith("w.json: ")


def test_a_byte_order_mark_and_a_dash_as_source_do_no_harm() -> None:
    assert isinstance(parse_workflow("\ufeff" + YAML, "-"), Workflow)
    assert isinstance(parse_workflow(b"\xef\xbb\xbf" + JSON.encode(), "-"), Workflow)


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_other_text_is_refused_and_never_breaks(text: str | bytes) -> None:
    with pytest.raises(InputError):
        parse_workflow(text, "noise.yaml")


def test_the_mermaid_of_a_workflow_has_a_box_for_each_stage_and_an_arrow_for_each_edge() -> None:
    workflow = parse_workflow(
        YAML.replace("name: send", 'name: "se]n\\"d"').replace(", send]", ', "se]n\\"d"]'), "a.yaml"
    )
    assert workflow.mermaid() == (
        "flowchart LR\n"
        '    s0["read<br/>reader<br/>t4 50 ms, a100 20 ms"]\n'
        '    s1["write<br/>writer, reader<br/>150 ms"]\n'
        '    s2["se#93;n#34;d<br/>0 ms"]\n'
        "    s0 --> s1\n"
        "    s1 --> s2\n"
    )


def test_nothing_is_read_from_disk(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(YAML)
    with pytest.raises(InputError):
        parse_workflow(str(file), "w.yaml")
