"""Job descriptions: what is understood, and how everything else is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from fairway.cluster import Cluster
from fairway.errors import InputError
from fairway.live.accelerator_request import AcceleratorRequest
from fairway.live.job_spec import parse_job_spec
from fairway.profiles.catalog import builtin

CLUSTER = Cluster({"a100": 4, "v100": 2, "k80": 8})
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
num_nodes: 1
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
    spec = parse_job_spec(WHOLE, "job.yaml")
    assert spec.name == "resnet"
    assert spec.run == "python train.py \\\n  --epochs 30\n"
    assert spec.envs == {"DATA": "/data", "WORKERS": "4", "DEBUG": "true"}
    assert spec.accelerators == AcceleratorRequest(("a100", "v100"), 2)
    assert (spec.team, spec.weight, spec.preemptible, spec.retries) == ("vision", 2.0, False, 0)
    assert (spec.checkpoint_every_seconds, spec.checkpoint_seconds, spec.grace_seconds) == (600.0, 30.0, 5.0)
    job = spec.job("7", CLUSTER, NOW)
    assert job.throughputs == {"a100": 12.5, "v100": 4.0}
    assert (job.scale_factor, job.weight, job.steps_left, job.entity) == (2, 2.0, 1000.0, "vision")
    assert job.slo_seconds == 5400.0


@pytest.mark.parametrize(
    "text", [WHOLE, "run: [python, train.py]", "run: a\ndeadline: 2027-01-31T18:00+01:00\njob_type: b\n"]
)
def test_a_spec_as_a_document_reads_as_the_same_spec(text: str) -> None:
    spec = parse_job_spec(text, "job.yaml")
    assert parse_job_spec(json.dumps(spec.document()), "again") == spec


def test_a_command_is_enough() -> None:
    spec = parse_job_spec(b'{"run": ["python", "train.py"]}', "request")
    assert spec.run == ("python", "train.py")
    assert spec.preemptible
    job = spec.job("1", CLUSTER, NOW)
    assert job.throughputs == {"a100": 1.0, "v100": 1.0, "k80": 1.0}
    assert (job.steps_left, job.slo_seconds, job.scale_factor) == (None, None, 1)


@pytest.mark.parametrize(
    "text",
    ["A100:2", "'a100 : 2'", "'[a100]:2'", "[A100:2]", "{A100: 2}", "[A100]:2"],
)
def test_accelerators_are_understood_in_every_form(text: str) -> None:
    assert parse_job_spec(f"run: a\nresources:\n  accelerators: {text}\n", "job.yaml").accelerators == (
        AcceleratorRequest(("a100",), 2)
    )


def test_rates_of_a_job_type_come_from_the_table() -> None:
    spec = parse_job_spec("run: a\nprofile: ResNet-18 (batch size 64)\nresources: {accelerators: V100}", "job.yaml")
    job = spec.job("1", CLUSTER, NOW, builtin())
    assert job.throughputs == {"v100": builtin().rate("ResNet-18 (batch size 64)", 1, "v100")}
    assert job.job_type == "ResNet-18 (batch size 64)"


def test_a_deadline_may_be_a_time() -> None:
    spec = parse_job_spec("run: a\ndeadline: 2027-01-01T03:00+01:00", "job.yaml")
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
        ("run: a\nnum_nodes: 2", "num_nodes: 2 given, but a job runs on one node here; ask for more accelerators"),
        ("run: a\nwieght: 2", "wieght: no such field, did you mean 'weight'?"),
        ("run: a\nweight: 0", "weight: 0 given, expected a number above 0"),
        ("run: a\nweight: 1\npriority: 2", "priority: given beside weight, which says the same; keep one of them"),
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
        ("run: a\nenvs: {A: [x]}", "envs.A: a list of 1 given, expected text or a number"),
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
        parse_job_spec(text, "job.yaml")
    assert str(caught.value).startswith(f"job.yaml: {line}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "resources: {accelerators: H100}",
            "resources.accelerators: 'h100' is not an accelerator of this cluster, did",
        ),
        (
            "resources: {accelerators: V100:3}",
            "resources.accelerators: 3 workers of one type asked for, but this cluster",
        ),
        ("throughputs: {p100: 3}", "throughputs: no rate above 0 on a100 or v100 or k80; give one for a type"),
        ("job_type: ResNet", "job_type: job type 'ResNet' is not in the table"),
    ],
)
def test_what_can_never_run_on_this_cluster_is_refused_at_the_door(text: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_job_spec(f"run: a\n{text}", "job.yaml").job("1", CLUSTER, NOW, builtin())
    assert str(caught.value).startswith(line)
