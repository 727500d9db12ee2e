"""From the description of a job to the job that the engine sees."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fairway.cluster import Cluster
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.jobs.description import JobDescription, parse_job
from fairway.live.training.clock import Clock
from fairway.live.training.engine_job import deadline_on, described_rates, engine_job
from fairway.profiles.catalog import builtin

CLUSTER = Cluster({"a100": 4, "v100": 2, "k80": 8})
RESNET = "ResNet-18 (batch size 64)"


def described(text: str) -> JobDescription:
    return parse_job(f"run: a\n{text}", "job.yaml")


def test_a_job_is_what_its_description_says() -> None:
    description = described(
        f"weight: 2\nresources: {{accelerators: '[A100, V100]:2'}}\njob_type: {RESNET}\npreemptible: false"
    )
    assert engine_job("7", description, {"a100": 1.5}, team="vision", steps_left=10.0, slo_seconds=3.0) == Job(
        id="7", throughputs={"a100": 1.5}, scale_factor=2, weight=2.0, steps_left=10.0, slo_seconds=3.0,
        entity="vision", job_type=RESNET, preemptible=False, resumes=False, nodes=1,
    )  # fmt: skip


def test_rates_are_those_of_the_description_on_the_types_that_will_do() -> None:
    rates = "throughputs: {A100: 12.5, v100: 4}"
    assert described_rates(described(rates), CLUSTER) == {"a100": 12.5, "v100": 4.0, "k80": 0.0}
    asked = described(f"{rates}\nresources: {{accelerators: V100}}")
    assert described_rates(asked, CLUSTER) == {"v100": 4.0}


def test_of_a_job_that_says_nothing_all_types_are_alike() -> None:
    assert described_rates(described(""), CLUSTER, builtin()) == {"a100": 1.0, "v100": 1.0, "k80": 1.0}


def test_rates_of_a_job_type_come_from_the_table() -> None:
    spec = described(f"profile: {RESNET}\nresources: {{accelerators: V100}}")
    assert described_rates(spec, CLUSTER, builtin()) == {"v100": builtin().rate(RESNET, 1, "v100")}


def test_a_deadline_is_on_the_clock_of_the_engine() -> None:
    clock = Clock(10.0, machine=SimpleNamespace(time=lambda: 1000.0, monotonic=lambda: 5.0))
    assert deadline_on(clock, described(""), 990.0) is None
    assert deadline_on(clock, described("deadline: 30s"), 990.0) == -100.0 + 30.0
    assert deadline_on(clock, described("deadline: 1970-01-01T00:17:00Z"), 990.0) == 200.0


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
        described_rates(parse_job(f"run: a\n{text}", "job.yaml"), CLUSTER, builtin())
    assert str(caught.value).startswith(line)
