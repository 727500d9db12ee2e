"""Jobs of traces as submissions: their rates, their work, and what cannot be one."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import pytest

from fairway.cluster import Cluster
from fairway.errors import InputError
from fairway.profiles import IsolatedRate, ThroughputTable, catalog
from fairway.sim.submissions import Submission
from fairway.sim.workload import Workload, submissions_of
from fairway.traces import TraceJob, parse_generate, read_openb_nodes, read_trace
from tests.figures import openb_nodes, openb_pods

EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER = Cluster({"v100": 4, "k80": 8})
TABLE = ThroughputTable(
    (
        IsolatedRate("LM", 1, "v100", 10.0),
        IsolatedRate("LM", 1, "k80", 2.0),
        IsolatedRate("LM", 1, "p100", 5.0),
        IsolatedRate("LM", 2, "v100", 18.0, 12.0),
        IsolatedRate("LM", 2, "k80", 4.0),
        IsolatedRate("LM", 8, "k80", 9.0, 0.0),
        IsolatedRate("GAN", 1, "v100", 3.0),
        IsolatedRate("GAN", 1, "k80", 0.0),
        IsolatedRate("A3C", 1, "k80", 7.0),
    ),
    source="rates.csv",
)


def submission(cluster: Cluster = CLUSTER, **fields: Any) -> Submission:
    job = TraceJob(**{"id": "a", "arrival": 100.0, **fields})
    (only,) = submissions_of([job], cluster, TABLE, source="jobs.tsv")
    return only


def refused(cluster: Cluster = CLUSTER, **fields: Any) -> str:
    with pytest.raises(InputError) as error:
        submission(cluster, **fields)
    assert str(error.value).startswith("jobs.tsv: job 'a': ")
    return str(error.value).removeprefix("jobs.tsv: job 'a': ")


def test_a_job_of_a_known_type_has_its_rates_on_the_types_of_the_cluster() -> None:
    given = submission(job_type="LM", total_steps=500.0, weight=3.0, entity="red")
    assert given.arrival == 100.0
    assert given.deadline is None
    assert given.job.throughputs == {"v100": 10.0, "k80": 2.0}
    assert given.job.spread_throughputs is None
    assert given.job.steps_left == 500.0
    assert (given.job.id, given.job.job_type, given.job.weight, given.job.entity) == ("a", "LM", 3.0, "red")


def test_a_gang_has_its_spread_rates_too() -> None:
    job = submission(job_type="LM", total_steps=1.0, scale_factor=2).job
    assert job.scale_factor == 2
    assert job.throughputs == {"v100": 18.0, "k80": 4.0}
    assert job.spread_throughputs == {"v100": 12.0, "k80": 4.0}


def test_a_duration_becomes_the_steps_that_the_reference_does_in_it() -> None:
    assert submission(job_type="LM", duration_seconds=60.0).job.steps_left == 600.0
    assert submission(job_type="LM", duration_seconds=60.0, scale_factor=2).job.steps_left == 60.0 * 18.0
    assert submission(job_type="LM", duration_seconds=60.0, total_steps=7.0).job.steps_left == 7.0


def test_a_job_without_a_type_makes_a_step_per_second_everywhere() -> None:
    job = submission(duration_seconds=60.0, scale_factor=3).job
    assert job.throughputs == {"v100": 1.0, "k80": 1.0}
    assert job.steps_left == 60.0
    assert job.scale_factor == 3
    assert job.job_type is None


def test_a_job_runs_only_on_the_accelerators_that_it_names() -> None:
    assert submission(duration_seconds=60.0, accelerators=("k80", "a100")).job.throughputs == {"k80": 1.0}
    job = submission(job_type="LM", total_steps=1.0, scale_factor=2, accelerators=("v100",)).job
    assert job.throughputs == {"v100": 18.0}
    assert job.spread_throughputs == {"v100": 12.0}


def test_a_part_of_a_gpu_is_a_whole_worker_for_now() -> None:
    job = submission(duration_seconds=60.0, gpu_fraction=0.25).job
    assert job.scale_factor == 1
    assert job.throughputs == {"v100": 1.0, "k80": 1.0}


def test_a_deadline_is_a_multiple_of_the_duration_after_arrival() -> None:
    assert submission(duration_seconds=60.0, slo=2.0).deadline == 220.0
    assert submission(job_type="LM", duration_seconds=60.0, total_steps=5.0, slo=2.0).deadline == 220.0
    # Without a duration, that of the steps on the reference: 600 / 10 seconds.
    assert submission(job_type="LM", total_steps=600.0, slo=2.0).deadline == 220.0
    assert submission(job_type="A3C", total_steps=600.0, slo=2.0).deadline is None
    assert submission(duration_seconds=60.0).deadline is None


@pytest.mark.parametrize(
    "fields",
    [
        {"duration_seconds": 60.0, "accelerators": ("tpu",)},
        {"duration_seconds": 60.0, "scale_factor": 9},
        {"duration_seconds": 60.0, "scale_factor": 5, "accelerators": ("v100",)},
        {"job_type": "GAN", "total_steps": 5.0, "accelerators": ("k80",)},
    ],
)
def test_a_job_that_fits_nowhere_is_a_submission_without_rates(fields: dict[str, Any]) -> None:
    job = submission(**fields).job
    assert job.throughputs == {}
    assert job.spread_throughputs is None
    assert job.steps_left == (fields.get("total_steps") or fields["duration_seconds"])


def test_a_gang_that_only_fits_spread_needs_a_spread_rate() -> None:
    gang = {"job_type": "LM", "scale_factor": 8, "total_steps": 5.0}
    assert submission(**gang).job.throughputs == {"k80": 9.0}
    assert submission(Cluster({"k80": 8}, workers_per_node={"k80": 4}), **gang).job.throughputs == {}


def test_what_no_profile_knows_is_refused_with_the_nearest_name() -> None:
    assert refused(job_type="LN", total_steps=5.0) == (
        "no profile of job type 'LN' in rates.csv; the nearest is 'LM'; correct the trace, or use profiles that have it"
    )
    assert refused(job_type="LM", total_steps=5.0, scale_factor=3).startswith(
        "no profile of 'LM' at scale factor 3 in rates.csv; known: 1, 2, 8; correct the trace"
    )
    assert refused(Cluster({"V100": 4}), job_type="LM", total_steps=5.0) == (
        "needs a profile, but rates.csv knows no accelerator type 'V100', which the cluster has (did you mean 'v100'?);"
        " known: v100, k80, p100; take it out of the cluster, or use profiles with it"
    )
    assert "knows no accelerator type 'tpu-v5', which the cluster has; known: v100, k80, p100" in refused(
        Cluster({"v100": 1, "tpu-v5": 4}), job_type="LM", total_steps=5.0
    )


def test_a_type_of_the_cluster_matters_only_if_it_has_workers_and_jobs_need_profiles() -> None:
    assert submission(Cluster({"v100": 1, "tpu": 0}), job_type="LM", total_steps=5.0).job.throughputs == {"v100": 10.0}
    assert submission(Cluster({"tpu": 4}), duration_seconds=5.0).job.throughputs == {"tpu": 1.0}


def test_a_job_of_unknown_length_is_refused() -> None:
    assert refused(job_type="LM").startswith("neither steps nor a duration given")
    assert refused(total_steps=5.0).startswith("neither a job type nor a duration given")
    line = refused(job_type="A3C", duration_seconds=5.0)
    assert "'A3C' (scale factor 1) has no rate on 'v100' in rates.csv" in line


def test_a_stream_without_end_is_made_as_it_is_asked_for() -> None:
    workload = Workload(generator=parse_generate("rate=4,multi-gpu"))
    first = list(itertools.islice(workload.submissions(Cluster({"v100": 36, "p100": 36, "k80": 36})), 5))
    # The draws for seed 0 and a mean gap of 900 s, as the original generator makes them.
    assert [round(each.arrival, 3) for each in first] == [0.0, 244.586, 951.775, 1367.543, 2201.068]
    assert [each.job.scale_factor for each in first] == [8, 1, 1, 1, 4]
    # The catalog has rates to four digits.
    assert first[1].job.steps_left == pytest.approx(343170.469, rel=1e-3)
    assert first[1].job.throughputs == catalog.builtin().rates("Transformer (batch size 16)", 1)


def test_jobs_can_be_dealt_to_teams() -> None:
    workload = Workload(generator=parse_generate("rate=4,jobs=5"), teams=("red", "blue"))
    owners = [each.job.entity for each in workload.submissions(Cluster({"v100": 36}))]
    assert owners == ["red", "blue", "red", "blue", "red"]


def test_a_workload_is_small_and_builds_the_same_jobs_elsewhere() -> None:
    workload = Workload(trace=str(EXAMPLES / "jobs.tsv"))
    pickled = pickle.dumps(workload)
    assert len(pickled) < 1000
    cluster = Cluster({"v100": 8, "p100": 8, "k80": 16})
    assert list(pickle.loads(pickled).submissions(cluster)) == list(workload.submissions(cluster))


def test_a_trace_that_has_changed_is_read_again(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.tsv"
    lines = (EXAMPLES / "jobs.tsv").read_text().splitlines(keepends=True)
    workload = Workload(trace=str(trace))
    for count in (40, 3):
        trace.write_text("".join(lines[:count]))
        assert len(list(workload.submissions(Cluster({"v100": 8})))) == count


def test_a_workload_is_a_trace_or_a_generator() -> None:
    for fields in ({}, {"trace": "a.tsv", "generator": parse_generate("rate=4")}):
        with pytest.raises(InputError, match="either a trace or a generator"):
            Workload(**fields)


def test_the_example_trace_is_what_the_generator_draws() -> None:
    trace = read_trace(EXAMPLES / "jobs.tsv")
    options = "jobs=40,rate=2,multi-gpu,multi-priority,slos,seed=3"
    cluster = Cluster({"v100": 8, "p100": 8, "k80": 16})
    drawn = list(Workload(generator=parse_generate(options)).submissions(cluster))
    read = list(Workload(trace=str(EXAMPLES / "jobs.tsv")).submissions(cluster))
    assert len(trace.jobs) == len(drawn) == 40
    assert not trace.skipped
    for one, other in zip(drawn, read, strict=True):
        assert other.arrival == pytest.approx(one.arrival, abs=1e-3)
        assert other.job.throughputs == one.job.throughputs
        assert other.job.steps_left == pytest.approx(one.job.steps_left, abs=0.5)
        assert other.job.weight == one.job.weight
        assert other.deadline == pytest.approx(one.deadline, rel=1e-2)


def test_published_pods_can_be_submitted_to_the_published_nodes(tmp_path: Path) -> None:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(openb_nodes())
    pods.write_text(openb_pods())
    cluster = read_openb_nodes(nodes).cluster()
    submitted = list(Workload(trace=str(pods)).submissions(cluster))
    assert len(submitted) == 816 - 97 - 101
    assert all(each.job.steps_left for each in submitted)
    assert all(each.job.throughputs == dict.fromkeys(cluster.types, 1.0) for each in submitted)
    arrivals = [each.arrival for each in submitted]
    assert arrivals == sorted(arrivals)
