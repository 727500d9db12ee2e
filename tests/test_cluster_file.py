"""Clusters in words, in YAML and as lists of nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.cluster import Cluster, Machine
from fairway.cluster_file import read_cluster
from fairway.errors import InputError

EXAMPLE = Path(__file__).parents[1] / "examples" / "cluster.yaml"


def test_a_cluster_in_a_few_words() -> None:
    assert read_cluster("v100=36, p100=36,k80=0") == Cluster({"v100": 36, "p100": 36, "k80": 0})


def test_the_example_has_prices_and_node_sizes() -> None:
    assert read_cluster(str(EXAMPLE)) == Cluster(
        {"v100": 8, "p100": 8, "k80": 16},
        {"v100": 0.74, "p100": 0.43, "k80": 0.135},
        {"v100": 4, "p100": 4, "k80": 8},
    )


def test_a_file_needs_no_suffix_and_may_be_json(tmp_path: Path) -> None:
    (tmp_path / "cluster").write_text("workers: {1080: 4}\nprices: null\n")
    assert read_cluster(str(tmp_path / "cluster")) == Cluster({"1080": 4})
    (tmp_path / "a=b").write_text("workers:\n  v100: 4\n")
    assert read_cluster(str(tmp_path / "a=b")) == Cluster({"v100": 4})
    (tmp_path / "cluster.json").write_text('{"workers": {"v100": 4}, "workers_per_node": {"v100": 2}}')
    assert read_cluster(str(tmp_path / "cluster.json")) == Cluster({"v100": 4}, {}, {"v100": 2})


def test_nodes_have_cpus_and_memory(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "workers: {v100: 3, k80: 2}\nworkers_per_node: {v100: 2}\ncpus_per_node: {v100: 16}\n"
        "memory_per_node: {v100: 64GB}\n"
    )
    cluster = read_cluster(str(tmp_path / "c.yaml"))
    assert cluster.machines == (Machine(16.0, 64e9), Machine(16.0, 64e9))
    assert cluster.machine_of == {"v100": (0, 0, 1)}
    assert cluster.has_room("v100", 3, 24.0, 0.0)
    assert not cluster.has_room("v100", 3, 48.0, 0.0)
    assert cluster.has_room("k80", 1, 1e6, 0.0), "not counted"


def test_a_list_of_nodes(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("sn,gpu,model\na,2,P100\nb,2,P100\nc,8,V100\nd,0,\n")
    assert read_cluster(str(nodes)) == Cluster({"P100": 4, "V100": 8}, workers_per_node={"P100": 2, "V100": 8})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v100", "cluster: 'v100' given, expected TYPE=COUNT as in 'v100=8,k80=16', a YAML file or a list of nodes"),
        ("", "cluster: '' given, expected TYPE=COUNT"),
        ("v100=-1", "cluster: 'v100=-1' given, expected TYPE=COUNT"),
        ("v100=1,v100=2", "cluster: 'v100' given twice"),
        ("v100=0,k80=0", "cluster: 0 workers in total; give at least one accelerator type some, as in 'v100=8,k80=16'"),
        ("absent.yaml", "absent.yaml: cannot be read: No such file"),
        ("absent.csv", "absent.csv: cannot be read: No such file"),
        ("x\0y", "cluster: 'x\\\\x00y' given, expected"),
    ],
)
def test_words_that_are_no_cluster_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        read_cluster(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty, expected"),
        ("workers: {v100: 0}", "0 workers in total; give at least one"),
        ("workers: {}", "0 workers in total; give at least one"),
        ("prices: {v100: 1}", "workers: missing, expected counts by accelerator type"),
        ("- 1\n", "the document: a list of 1 given, expected the workers of each accelerator type"),
        ("workers: 4", "workers: 4 given, expected counts by accelerator type"),
        ("workers: {v100: -4}", "workers.v100: -4 given, expected a whole number from 0"),
        ("workers: {v100: many}", 'workers.v100: "many" given, expected a whole number'),
        ("workers: {v100: 2.5}", "workers.v100: 2.5 given, expected a whole number"),
        ("workers: {v100: 2}\nprices: {v100: 0}", "prices.v100: 0 given, expected a number > 0"),
        ("workers: {v100: 2, k80: 2}\nprices: {v100: 1}", "prices: 'k80' missing; price every accelerator type"),
        ("workers: {v100: 2}\nworkers_per_node: {k80: 1}", "workers_per_node.k80: no such accelerator type"),
        ("workers: {v100: 2}\nworker_per_node: {v100: 1}", "worker_per_node: no such field, did you mean 'workers_per"),
        ("workers: {v100: 2}\nworkers: {v100: 3}", "line 1: 'workers' given twice"),
        ("workers: {v100: 2", "not valid YAML: .* at line 1"),
    ],
)
def test_a_file_that_is_no_cluster_is_refused_with_its_name_and_field(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_cluster(str(path))
    line = str(error.value)
    assert line.startswith(f"{path}: ")
    with pytest.raises(InputError, match=f"^{message}"):
        raise InputError(line.removeprefix(f"{path}: "))
