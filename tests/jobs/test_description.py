"""Job descriptions: what is understood, and how everything else is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel

from fairway.documents import Form
from fairway.errors import InputError
from fairway.jobs.accelerators import AcceleratorRequest
from fairway.jobs.description import JobDescription, job_of, parse_job

NOW = datetime(2027, 1, 1, tzinfo=UTC)

WHOLE = """
kind: training
name: resnet
run: |
  python train.py \\
    --epochs 30
setup: pip list
workdir: /tmp
envs: {DATA: /data, WORKERS: 4, DEBUG: true}
resources:
  accelerators: [A100, V100]:2
num_nodes: 3
team: vision
weight: 2
deadline: 1h30m
preemptible: false
retries: 0
checkpoint: {interval: 10m, directory: /data/checkpoints, seconds: 30}
grace: 5s
steps: 1e3
throughputs: {A100: 12.5, v100: 4}
"""


def test_every_field_is_read() -> None:
    spec = parse_job(WHOLE, "job.yaml")
    assert spec.name == "resnet"
    assert spec.run == "python train.py \\\n  --epochs 30\n"
    assert spec.envs == {"DATA": "/data", "WORKERS": "4", "DEBUG": "true"}
    assert spec.accelerators == AcceleratorRequest(("a100", "v100"), 2)
    assert (spec.team, spec.weight, spec.preemptible, spec.retries) == ("vision", 2.0, False, 0)
    assert (spec.checkpoint.interval, spec.checkpoint.seconds, spec.grace) == (600.0, 30.0, 5.0)
    assert (spec.deadline, spec.steps, spec.throughputs) == (5400.0, 1000, {"A100": 12.5, "v100": 4.0})


@pytest.mark.parametrize(
    "text", [WHOLE, "run: [python, train.py]", "run: a\ndeadline: 2027-01-31T18:00+01:00\njob_type: b\n"]
)
def test_the_document_of_a_description_reads_as_the_same_description(text: str) -> None:
    spec = parse_job(text, "job.yaml")
    document = json.loads(json.dumps(spec.document()))
    again = job_of(document, "again")
    assert again == spec
    assert again.document() == document


def test_a_document_has_what_was_given_by_the_first_names_in_one_form() -> None:
    text = """
        run: [python, train.py]
        priority: 3
        slo: 1h
        profile: resnet
        retries: null
        envs: {A: 1, B: true}
        resources: {accelerators: {V100: 2, A100: 2}}
        checkpoint: {interval: 10m, seconds: null}
    """
    assert parse_job(text, "job.yaml").document() == {
        "run": ["python", "train.py"],
        "weight": 3.0,
        "deadline": 3600.0,
        "job_type": "resnet",
        "envs": {"A": "1", "B": "true"},
        "resources": {"accelerators": "[v100, a100]:2"},
        "checkpoint": {"interval": 600.0},
    }
    assert parse_job("run: a\ndeadline: 2027-01-31T18:00+01:00", "job.yaml").document() == {
        "run": "a",
        "deadline": "2027-01-31T17:00:00+00:00",
    }


def test_a_command_is_enough() -> None:
    spec = parse_job(b'{"run": ["python", "train.py"]}', "request")
    assert spec.run == ("python", "train.py")
    assert (spec.weight, spec.preemptible, spec.retries) == (1.0, True, 3)
    assert (spec.grace, spec.checkpoint.seconds) == (10.0, 60.0)
    assert (spec.accelerators, spec.steps, spec.deadline) == (AcceleratorRequest(), None, None)
    assert spec.document() == {"run": ["python", "train.py"]}


def test_a_home_directory_is_that_of_the_machine_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = parse_job("run: a\nworkdir: ~/vision\ncheckpoint: {directory: ~/saved}", "job.yaml")
    assert spec.document()["workdir"] == "~/vision", "it may be sent to another machine"
    monkeypatch.setenv("HOME", "/home/me")
    assert (spec.working_directory, spec.checkpoint_directory) == ("/home/me/vision", "/home/me/saved")


@pytest.mark.parametrize(
    "text",
    ["A100:2", "'a100 : 2'", "'[a100]:2'", "[A100:2]", "{A100: 2}", "[A100]:2"],
)
def test_accelerators_are_understood_in_every_form(text: str) -> None:
    assert parse_job(f"run: a\nresources:\n  accelerators: {text}\n", "job.yaml").accelerators == (
        AcceleratorRequest(("a100",), 2)
    )


def test_cpus_and_memory_are_numbers_and_sizes() -> None:
    spec = parse_job("run: a\nresources: {cpus: 0.5, memory: 1.5GiB}\n", "job.yaml")
    assert (spec.resources.cpus, spec.resources.memory) == (0.5, 3 * 2**29)
    assert job_of(spec.document(), "again") == spec


@pytest.mark.parametrize("given", ["cpus: 0", "cpus: -1", "cpus: many", "cpus: .inf", "cpus: true", "cpus: 1e300",
                                   "memory: 4", "memory: lots", "memory: -1GB", "memory: [1]"])  # fmt: skip
def test_cpus_and_memory_that_are_none_are_refused(given: str) -> None:
    name = given.partition(":")[0]
    expected = {"cpus": "expected a number of CPUs from 0.01", "memory": "expected a size of memory of at least 1MiB"}
    with pytest.raises(InputError, match=rf"^job.yaml: resources.{name}: .* given, {expected[name]}"):
        parse_job(f"run: a\nresources: {{{given}}}\n", "job.yaml")


def test_a_deadline_may_be_a_time() -> None:
    spec = parse_job("run: a\ndeadline: 2027-01-01T03:00+01:00", "job.yaml")
    assert spec.seconds_left(NOW) == timedelta(hours=2).total_seconds()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("run: [", "not valid YAML: expected the node content, but found '<stream end>' at line 1 column 7; correct"),
        (
            "name: a\nrun: b\n  c: d",
            "not valid YAML: mapping values are not allowed here at line 3 column 4; correct it",
        ),
        ("", "empty, expected a job, as in 'run: python train.py'"),
        ("name: x", "run: missing, expected the command to run"),
        ("run: 3", "run: 3 given, expected a command, as in 'python train.py', or a list of its words"),
        ("run: ' '", "run: nothing to run given"),
        ('run: "a\\0b"', "run: a character of code 0 given"),
        (
            "run: a\nname: ../../etc/cron.d/x",
            "name: '../../etc/cron.d/x' given, but it must not be a path; expected up",
        ),
        ("run: a\nname: ..", "name: '..' given, but it must not be a path"),
        ("run: a\nname: two words", "name: 'two words' given, but it is not one; expected up to 63 letters"),
        ("run: a\nnum_nodes: 0", "num_nodes: 0 given, expected a whole number from 1 to 1000, as in 2"),
        ("run: a\nnum_nodes: two", 'num_nodes: "two" given, expected a whole number from 1 to 1000'),
        ("run: a\nwieght: 2", "wieght: no such field, did you mean 'weight'?"),
        ("run: a\nweight: 0", "weight: 0 given, expected a number above 0"),
        ("run: a\nweight: 1\npriority: 2", "priority: given beside weight, which says the same; keep one of them"),
        (
            "run: a\ndeadline: yesterday",
            "deadline: \"yesterday\" given, expected seconds, or a length of time such as '50ms'",
        ),
        ("run: a\nslo: 1\ndeadline: 2", "slo: given beside deadline, which says the same; keep one of them"),
        ("run: a\npriority: 0", "priority: 0 given, expected a number above 0"),
        ("run: a\nxyzzy: null", "xyzzy: no such field; take it out or use one of run, kind, name"),
        ("run: null", "run: missing, expected the command to run"),
        ("run: a\nkind: service", "kind: \"service\" given, expected 'training'"),
        ("run: a\npreemptible: maybe", 'preemptible: "maybe" given, expected true or false'),
        ("run: a\nretries: -1", "retries: -1 given, expected a whole number from 0 to 1000"),
        ("run: a\nsteps: 1.5", "steps: 1.5 given, expected a whole number from 1"),
        ("run: a\nthroughputs: {v100: -1}", "throughputs.v100: -1 given, expected a number of at least 0"),
        ("run: a\ndeadline: soon", 'deadline: "soon" given, expected seconds, or a length of time such as'),
        ("run: a\nslo: -3", "slo: -3 given, expected seconds, or a length of time"),
        ("run: a\ndeadline: 2027-01-01 12:00:00", "deadline: '2027-01-01 12:00:00' given without a time zone; add one"),
        ("run: a\ndeadline: 2027-99-01T00:00Z", "deadline: '2027-99-01T00:00Z' given, expected a time such as"),
        ("run: a\ncheckpoint: {every: 3}", "checkpoint.every: no such field"),
        ("run: a\nenvs: {FAIRWAY_RANK: 1}", "envs.FAIRWAY_RANK: set by Fairway itself; take it out"),
        ("run: a\nenvs: {1A: x}", "envs.1A: not the name of a variable"),
        ("run: a\nenvs: {A: [x]}", "envs.A: a list of 1 given, expected text or a finite number"),
        ("run: a\nenvs: {A: .inf}", "envs.A: inf given, expected text or a finite number"),
        ("run: a\nenvs: {A: }", "envs.A: no value given, expected text"),
        ("run: a\nresources: 3", "resources: 3 given, expected an object, as in {accelerators: A100:2}"),
        ("run: a\nresources: {accelerators: A100:0}", 'resources.accelerators: a count of "0" given, expected a whole'),
        ("run: a\nresources: {accelerators: 2}", "resources.accelerators: 2 given, expected 'A100:2'"),
        ("run: a\nresources: {accelerators: []}", "resources.accelerators: no accelerator type given"),
        ("run: a\nresources: {accelerators: {A100: 2, V100: 4}}", "resources.accelerators: counts 2 and 4 given"),
        ("run: a\nresources: {accelerators: [A100, a100]}", "resources.accelerators: 'a100' given twice"),
    ],
)
def test_a_mistake_is_one_line_with_the_field(text: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_job(text, "job.yaml")
    assert str(caught.value).startswith(f"job.yaml: {line}")
    assert "\n" not in str(caught.value)


def test_every_field_says_what_it_means_and_what_is_expected() -> None:
    form = Form.of(JobDescription, "a job")
    assert set(form.parts) == {"", "resources", "environment", "checkpoint"}
    for path, model in form.parts.items():
        assert issubclass(model, BaseModel)
        for name, facts in model.model_fields.items():
            assert facts.description, name
            assert facts.description.endswith("."), name
            assert form.expected[f"{path}.{name}".lstrip(".")], name


def test_every_example_is_one() -> None:
    for path, model in Form.of(JobDescription, "a job").parts.items():
        for name, facts in model.model_fields.items():
            for example in facts.examples or ():
                fields = {name: example} if path == "" else {path: {name: example}}
                assert job_of({"run": "a", **fields}, "job").document()


def test_a_description_can_be_made_in_python() -> None:
    made = JobDescription(run=("python", "train.py"), weight=2, deadline=NOW)
    assert made == job_of({"run": ["python", "train.py"], "weight": 2, "deadline": NOW.isoformat()}, "job")
