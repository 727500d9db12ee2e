"""Alibaba's trace of 2023: pods with parts of GPUs, and the nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fairway.errors import InputError
from fairway.traces import GpuNodes, SkippedRow, TraceJob, parse_trace, read_openb_nodes, read_trace
from tests.figures import openb_nodes, openb_pods

HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)
NEVER = "never scheduled, so how long it would have run is not known"


def test_pods_become_jobs_with_their_part_of_a_gpu_and_the_models_they_accept() -> None:
    text = HEADER + (
        "late,4000,8192,2,1000,,LS,Running,300,1300,310\n"
        "part,6000,12288,1,460,V100M16|V100M32,LS,Succeeded,100,500,150\n"
    )
    trace = parse_trace(text, "pods.csv")
    assert trace.format == "openb"
    assert trace.jobs == (
        TraceJob(
            "part",
            0.0,
            duration_seconds=350.0,
            accelerators=("V100M16", "V100M32"),
            gpu_fraction=0.46,
            status="Succeeded",
        ),
        TraceJob("late", 200.0, scale_factor=2, duration_seconds=990.0, status="Running"),
    )


def test_pods_that_cannot_run_are_reported() -> None:
    text = HEADER + (
        "cpu,1,1,0,0,,LS,Running,0,9,0\n"
        "pending,1,1,1,1000,,BE,Pending,5,9,\n"
        "gone,1,1,1,1000,,BE,Failed,5,9,9\n"
        "many,1,1,1,1500,,BE,Failed,5,9,6\n"
        "short,1,1,1\n"
        'quote,1,1,1,1000,"V100,LS,Running,0,9,0\n'
        "good,1,1,1,1000,,LS,Running,7,9,8\n"
        "good,1,1,1,1000,,LS,Running,7,9,8\n"
        '"quoted",1,1,1,1000,"V100",LS,Running,7,9,8\n'
    )
    trace = parse_trace(text, "pods.csv")
    assert [(job.id, job.arrival) for job in trace.jobs] == [("good", 0.0), ("quoted", 0.0)]
    assert trace.skipped == (
        SkippedRow(2, "asks for no GPU", True),
        SkippedRow(3, NEVER, True),
        SkippedRow(4, "deleted no later than scheduled"),
        SkippedRow(5, "gpu_milli: '1500' given, expected a number above 0 and up to 1000"),
        SkippedRow(6, "4 columns given, expected 11"),
        SkippedRow(7, "not valid CSV: unexpected end of data"),
        SkippedRow(9, "a second job 'good'"),
    )


def test_a_header_without_a_column_is_an_error() -> None:
    with pytest.raises(InputError, match=r"^pods.csv, line 1: no column gpu_milli, scheduled_time in the header; it"):
        parse_trace(HEADER.replace(",gpu_milli", "").replace(",scheduled_time", ""), "pods.csv")
    with pytest.raises(InputError, match=r"^pods.csv, line 1: header: not valid CSV"):
        parse_trace('"' + HEADER, "pods.csv", "openb")


def test_every_tenth_of_the_published_pods_is_read_or_reported() -> None:
    trace = parse_trace(openb_pods(), "pods.csv")
    assert len(trace.jobs) + len(trace.skipped) == 816
    assert trace.skipped_by_reason == {"asks for no GPU": 97, NEVER: 101}
    assert Counter(job.scale_factor for job in trace.jobs) == {1: 610, 2: 1, 4: 2, 8: 5}
    assert any(job.gpu_fraction < 1 for job in trace.jobs)
    assert "97 × asks for no GPU" in trace.summary()


def test_the_published_pods_are_read_or_reported_every_one(shared_data: Callable[[str], Path]) -> None:
    trace = read_trace(shared_data("alibaba-2023/openb_pod_list_default.csv"))
    assert len(trace.jobs) + len(trace.skipped) == 8152
    assert trace.skipped_by_reason == {"asks for no GPU": 1088, NEVER: 861}
    assert Counter(job.scale_factor for job in trace.jobs).keys() == {1, 2, 4, 8}
    assert any(job.gpu_fraction < 1 for job in trace.jobs)
    assert "1088 × asks for no GPU" in trace.summary()


@pytest.fixture
def nodes(tmp_path: Path) -> GpuNodes:
    file = tmp_path / "nodes.csv"
    file.write_text(openb_nodes())
    return read_openb_nodes(file)


def test_the_published_nodes_have_6212_gpus(nodes: GpuNodes) -> None:
    assert nodes.workers == {
        "P100": 265,
        "G3": 312,
        "V100M32": 204,
        "V100M16": 195,
        "G2": 4392,
        "T4": 842,
        "A10": 2,
    }
    assert sum(nodes.workers.values()) == 6212
    assert sum(sum(sizes.values()) for sizes in nodes.nodes_by_size.values()) == 1213
    assert nodes.nodes_by_size["V100M16"] == {1: 19, 4: 28, 8: 8}
    cluster = nodes.cluster()
    assert cluster.workers == nodes.workers
    assert cluster.workers_per_node["V100M16"] == 4
    assert cluster.workers_per_node["G2"] == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no column sn, gpu, model in the header; it needs sn, gpu, model"),
        ("sn,gpu,model\n", "no node with a GPU"),
        ("sn,gpu,model\na,0,\n", "no node with a GPU"),
        ("sn,gpu,model\na,2,P100\nb,x,P100", "line 3: gpu: 'x' given, expected a number"),
        ("sn,gpu,model\na,2,", "line 2: model: nothing given"),
        ("sn,gpu,model\na,2", "line 2: 2 columns given, expected 3"),
    ],
)
def test_a_node_list_that_cannot_be_used_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_openb_nodes(path)


def test_the_node_list_itself_holds_these_nodes(shared_data: Callable[[str], Path], nodes: GpuNodes) -> None:
    assert read_openb_nodes(shared_data("alibaba-2023/openb_node_list_gpu_node.csv")) == nodes
