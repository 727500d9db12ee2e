"""What labels and resources of Ray's nodes mean: types, counts and names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairway.errors import InputError
from fairway.live.ray_cluster.nodes import RayNode, living, named, refuse_no_accelerators

ROOT = Path(__file__).resolve().parents[3]


def row(
    node: str = "ab12", *, labels: dict[str, str] | None = None, gpus: float = 0, alive: bool = True
) -> dict[str, Any]:
    resources = {"CPU": 4.0} | ({"GPU": gpus} if gpus else {})
    return {
        "NodeID": node, "Alive": alive, "NodeManagerAddress": "10.0.0.7", "Resources": resources, "Labels": labels or {}
    }  # fmt: skip


def test_labels_declare_emulated_accelerators() -> None:
    node = RayNode.of(row(labels={"ray.io/accelerator-type": "V100", "fairway.io/accelerators": "4"}))
    assert (node.type, node.count, node.problem) == ("v100", 4, None)
    assert node.emulated(found=0) == "v100=4"
    assert node.emulated(found=8) == "v100=4", "what is declared goes before what is found"


def test_gpus_that_ray_counts_are_real_where_they_are_found_and_emulated_where_not() -> None:
    node = RayNode.of(row(labels={"ray.io/accelerator-type": "A100"}, gpus=2.0))
    assert node.count == 2
    assert node.emulated(found=2) is None
    assert node.emulated(found=0) == "a100=2"
    assert RayNode.of(row(gpus=1.0)).emulated(found=0) == "gpu=1"


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"ray.io/accelerator-type": "V100"}, "no label fairway.io/accelerators"),
        ({"fairway.io/accelerators": "2"}, "not ray.io/accelerator-type"),
        ({"ray.io/accelerator-type": "V100", "fairway.io/accelerators": "two"}, "not a whole number"),
        ({"ray.io/accelerator-type": "V100", "fairway.io/accelerators": "-1"}, "not a whole number"),
        ({"ray.io/accelerator-type": "V100", "fairway.io/accelerators": "9" * 30}, "not a whole number"),
    ],
)
def test_labels_that_contradict_themselves_are_a_problem_of_the_node(labels: dict[str, str], said: str) -> None:
    node = RayNode.of(row(labels=labels))
    assert node.count == 0
    assert node.problem is not None
    assert said in node.problem
    with pytest.raises(InputError, match="none with accelerators") as refused:
        refuse_no_accelerators("here:6379", [node])
    assert node.problem in str(refused.value)


def test_a_cluster_with_one_accelerator_is_not_refused() -> None:
    refuse_no_accelerators("here:6379", [RayNode.of(row()), RayNode.of(row("cd", gpus=1.0))])


def test_the_dead_are_left_out() -> None:
    assert [node.id for node in living([row("cd"), row("ab"), row("ef", alive=False)])] == ["ab", "cd"]


def test_a_node_keeps_its_name_when_another_of_the_same_machine_comes() -> None:
    first, second = RayNode.of(row("zz" * 20)), RayNode.of(row("aa" * 20))
    names = named([first], {})
    assert names == {first.id: "10.0.0.7"}
    assert named([second, first], names) == {first.id: "10.0.0.7", second.id: "10.0.0.7-aaaaaaaa"}


@given(st.lists(st.text(alphabet="0123456789abcdef", min_size=40, max_size=40), unique=True, max_size=6), st.data())
def test_names_differ_and_stay(ids: list[str], data: st.DataObject) -> None:
    nodes = [RayNode.of(row(one)) for one in ids]
    some = data.draw(st.lists(st.sampled_from(nodes), unique=True)) if nodes else []
    before = named(some, {})
    after = named(nodes, before)
    assert {node: after[node] for node in before} == before
    assert after.keys() == set(ids)


@given(st.text(max_size=100))
def test_any_label_makes_a_name_of_a_directory(label: str) -> None:
    name = RayNode.of(row("ab" * 20, labels={"fairway.io/node": label})).wanted_name
    assert name not in {"", ".", ".."}
    assert "/" not in name
    assert name.isascii()
    assert len(name) <= 100


def test_the_workers_of_the_example_for_kubernetes_are_nodes_with_accelerators() -> None:
    text = (ROOT / "examples/kuberay/fairway.yaml").read_text(encoding="utf-8")
    _, cluster = yaml.safe_load_all(text)
    found = {}
    for group in cluster["spec"]["workerGroupSpecs"]:
        (container,) = group["template"]["spec"]["containers"]
        labels = group["labels"]
        gpus = float(container["resources"]["limits"].get("nvidia.com/gpu", 0))
        node = RayNode.of(row(labels=labels, gpus=gpus))
        assert node.problem is None
        found[group["groupName"]] = (node.type, node.count, node.emulated(int(gpus)))
    assert found == {"a100": ("a100", 4, None), "emulated": ("k80", 2, "k80=2")}
