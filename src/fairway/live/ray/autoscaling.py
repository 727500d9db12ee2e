"""From what the queue asks for to the bundles that Ray's autoscaler is asked for, and how Ray is told.

A bundle is what has to be free on one node: a gang on several nodes is a bundle for each of them. Which accelerator
type is said by a selector on the nodes' labels, in their own spelling; of several types that will do, Ray takes what it
can get. Jobs that run are in it as well: of what Fairway's jobs take, Ray knows nothing, and would end their nodes as
idle. Ray counts accelerators as its resource `GPU`. Types that are declared by labels alone, without that resource, are
left out: no node that Ray could start would satisfy such a bundle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fairway.live.backend.demand import JobDemand
from fairway.live.ray_cluster.nodes import TYPE_LABEL, UNNAMED_TYPE, RayNode

MOST_BUNDLES = 1000
"""The autoscaler fits bundles into nodes each few seconds; what is behind these would have to wait in any case."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What has to fit on one node: its `resources` in Ray's names, and the labels that it has to have."""

    resources: Mapping[str, float]
    selector: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TypesSeen:
    """How nodes spell their types, by the type as Fairway knows it, and which types Ray does not count as `GPU`."""

    spellings: Mapping[str, frozenset[str]]
    uncounted: frozenset[str]

    def with_nodes(self, nodes: Iterable[RayNode]) -> TypesSeen:
        """With these nodes as well; a node that has ended says how the next one of its type will be spelt."""
        spellings, uncounted = dict(self.spellings), set(self.uncounted)
        for node in nodes:
            if node.type is None or node.label is None or not node.count:
                continue
            spellings[node.type] = spellings.get(node.type, frozenset()) | {node.label}
            (uncounted.add if not node.gpus else uncounted.discard)(node.type)
        return TypesSeen(spellings, frozenset(uncounted))


NOTHING_SEEN = TypesSeen({}, frozenset())


def bundles_of(demand: Iterable[JobDemand], seen: TypesSeen) -> list[Bundle]:
    """What to ask Ray for, the most needed first, `MOST_BUNDLES` at most."""
    found: list[Bundle] = []
    for one in demand:
        types = [name for name in one.types if name not in seen.uncounted]
        if not types:
            continue
        selector = _selector(types, seen.spellings)
        # Parts of several accelerators are on different ones: none needs another beside it.
        for workers in _by_node(one.workers, one.nodes if one.part == 1 else 0):
            share = workers / one.workers
            resources = {"GPU": workers * one.part}
            if one.cpus:
                resources["CPU"] = one.cpus * share
            if one.memory_bytes:
                resources["memory"] = float(round(one.memory_bytes * share))
            found.append(Bundle(resources, selector))
            if len(found) == MOST_BUNDLES:
                return found
    return found


def _by_node(workers: int, nodes: int) -> list[int]:
    """How many workers of a gang each of its nodes has, spread as far as it may be."""
    count = min(workers, nodes or workers)
    return [workers // count + (number < workers % count) for number in range(count)]


def _selector(types: Sequence[str], spellings: Mapping[str, Collection[str]]) -> dict[str, str]:
    if UNNAMED_TYPE in types:
        return {}  # nodes with GPUs whose type they do not say
    # A type of which no node was seen yet is spelt in small letters or in large ones.
    names = sorted({name for one in types for name in spellings.get(one, (one, one.upper()))})
    return {TYPE_LABEL: names[0] if len(names) == 1 else f"in({','.join(names)})"}


def ask_ray_for(bundles: Sequence[Bundle]) -> None:
    """Ask Ray's autoscaler for nodes that hold all of these, instead of what it was asked for before."""
    from ray.autoscaler.sdk import request_resources  # noqa: PLC0415 - Ray is an extra, and slow to import

    request_resources(
        bundles=[dict(one.resources) for one in bundles],
        bundle_label_selectors=[dict(one.selector) for one in bundles],
    )
