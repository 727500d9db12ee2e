"""From the queue to the bundles that Ray's autoscaler is asked for, without Ray."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.live.backend.demand import JobDemand
from fairway.live.ray.autoscaling import MOST_BUNDLES, NOTHING_SEEN, Bundle, TypesSeen, bundles_of
from fairway.live.ray_cluster.nodes import TYPE_LABEL, RayNode

SEEN = TypesSeen({"v100": frozenset({"V100"}), "k80": frozenset({"K80"}), "p100": frozenset({"P100"})},
                 frozenset({"p100"}))  # fmt: skip


def node(kind: str | None, *, gpus: int = 2, declared: bool = False) -> RayNode:
    return RayNode("id", "10.0.0.7", "a", None if kind is None else kind.lower(), 2, declared, None, kind, gpus)


def test_a_job_is_a_bundle_with_the_label_of_its_type_as_nodes_spell_it() -> None:
    demand = JobDemand(("v100",), workers=2, cpus=4.0, memory_bytes=1e9)
    assert bundles_of([demand], SEEN) == [Bundle({"GPU": 2, "CPU": 4.0, "memory": 1e9}, {TYPE_LABEL: "V100"})]


def test_a_job_that_several_types_will_do_for_leaves_the_choice_to_ray() -> None:
    (bundle,) = bundles_of([JobDemand(("v100", "k80"))], SEEN)
    assert bundle.selector == {TYPE_LABEL: "in(K80,V100)"}


def test_a_gang_on_several_nodes_is_a_bundle_for_each_of_them() -> None:
    demand = JobDemand(("v100",), workers=8, nodes=2, cpus=16.0)
    assert bundles_of([demand], SEEN) == 2 * [Bundle({"GPU": 4, "CPU": 8.0}, {TYPE_LABEL: "V100"})]
    anywhere = bundles_of([JobDemand(("v100",), workers=3, nodes=0)], SEEN)
    assert [bundle.resources for bundle in anywhere] == 3 * [{"GPU": 1}]


def test_a_part_of_an_accelerator_is_a_part_of_a_gpu() -> None:
    assert [one.resources for one in bundles_of([JobDemand(("k80",), part=0.25)], SEEN)] == [{"GPU": 0.25}]


def test_types_that_ray_does_not_count_are_not_asked_for() -> None:
    assert bundles_of([JobDemand(("p100",))], SEEN) == []
    (bundle,) = bundles_of([JobDemand(("p100", "k80"))], SEEN)
    assert bundle.selector == {TYPE_LABEL: "K80"}


def test_gpus_that_do_not_say_what_they_are_have_no_label_to_be_asked_for_by() -> None:
    assert bundles_of([JobDemand(("gpu",))], SEEN) == [Bundle({"GPU": 1}, {})]


def test_a_type_of_which_no_node_was_seen_is_spelt_in_either_way() -> None:
    (bundle,) = bundles_of([JobDemand(("a100",))], NOTHING_SEEN)
    assert bundle.selector == {TYPE_LABEL: "in(A100,a100)"}


def test_what_nodes_say_is_remembered_when_they_are_gone() -> None:
    seen = NOTHING_SEEN.with_nodes([node("V100"), node("K80", gpus=0, declared=True), node(None)]).with_nodes([])
    assert seen == TypesSeen({"v100": frozenset({"V100"}), "k80": frozenset({"K80"})}, frozenset({"k80"}))


@given(
    st.lists(
        st.builds(
            JobDemand,
            types=st.lists(st.sampled_from(["v100", "k80"]), min_size=1, unique=True).map(tuple),
            workers=st.integers(1, 64),
            nodes=st.integers(0, 8),
            cpus=st.floats(0, 64),
        ),
        max_size=10,
    )
)
def test_all_that_is_needed_is_asked_for_and_no_more(demand: list[JobDemand]) -> None:
    bundles = bundles_of(demand, SEEN)
    assert sum(one.resources["GPU"] for one in bundles) == sum(one.workers for one in demand)
    cpus = sum(one.resources.get("CPU", 0.0) for one in bundles)
    assert abs(cpus - sum(one.cpus for one in demand)) < 1e-6
    assert len(bundles) <= sum(one.nodes or one.workers for one in demand)


def test_no_more_than_so_many_bundles_are_asked_for_and_the_first_jobs_are_among_them() -> None:
    demand = [JobDemand(("k80",)), *(2 * MOST_BUNDLES * [JobDemand(("v100",))])]
    bundles = bundles_of(demand, SEEN)
    assert len(bundles) == MOST_BUNDLES
    assert bundles[0].selector == {TYPE_LABEL: "K80"}
