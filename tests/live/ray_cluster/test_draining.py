"""What is said of a node that Ray drains; that Ray says so, and what follows, is tested on a real one (`live.ray`)."""

from __future__ import annotations

from fairway.live.ray_cluster.draining import draining_nodes, notice_of


def test_the_notice_says_when_the_node_ends_if_that_is_known() -> None:
    assert notice_of(0.0) == "Ray drains it; its jobs save and move"
    assert notice_of(1_800_000_000.0) == "Ray drains it, and it ends at 08:00:00 UTC; its jobs save and move"


def test_no_node_is_drained_where_ray_cannot_be_asked() -> None:
    assert draining_nodes() == {}
