"""What the nodes of a Ray cluster offer: which of them have accelerators, of which type, how many, and their names.

A node says so by its labels and resources, as `ray.nodes()` lists them. `ray.io/accelerator-type`, which Ray sets by
itself where it knows the GPU and `ray start --labels` sets anywhere, is the type. Their count is the label
`fairway.io/accelerators`, or else Ray's resource `GPU`. Accelerators are emulated where the count label declares them,
or where Ray counts GPUs and NVIDIA's library finds none. A node without any of these, such as a head, runs no jobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairway.errors import InputError

TYPE_LABEL = "ray.io/accelerator-type"
COUNT_LABEL = "fairway.io/accelerators"
NAME_LABEL = "fairway.io/node"
NODE_ID_LABEL = "ray.io/node-id"

UNNAMED_TYPE = "gpu"
"""The type of GPUs whose node does not say what they are."""

_MOST = 10_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class RayNode:
    """One node that lives, as Ray lists it. `wanted_name` is what its label or its address says; it may be taken.

    `label` is the type as the node spells it, `gpus` how many of its accelerators Ray counts as its resource. `problem`
    says what is wrong with its labels, so that nothing can run there.
    """

    id: str
    address: str
    wanted_name: str
    type: str | None
    count: int
    declared: bool
    problem: str | None = None
    label: str | None = None
    gpus: int = 0

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> RayNode:
        """From a row of `ray.nodes()`."""
        labels: Mapping[str, str] = row.get("Labels") or {}
        address, identity = str(row["NodeManagerAddress"]), str(row["NodeID"])
        gpus = int((row.get("Resources") or {}).get("GPU", 0))
        kind = labels.get(TYPE_LABEL)
        told = labels.get(COUNT_LABEL)
        problem = None
        count = gpus
        if told is not None:
            count = int(told) if told.isascii() and told.isdecimal() and int(told) <= _MOST else 0
            if str(count) != told:
                problem = f"its label {COUNT_LABEL}={told} is not a whole number"
            elif kind is None:
                problem = f"it has the label {COUNT_LABEL}, but not {TYPE_LABEL}"
        elif kind is not None and not gpus:
            problem = f"it has the label {TYPE_LABEL}={kind}, but no GPU, and no label {COUNT_LABEL} that says how many"
        name = labels.get(NAME_LABEL, address)
        if not _NAME.fullmatch(name):
            name = re.sub(r"[^A-Za-z0-9._-]", "-", name).strip("-.") or identity[:8]
        return cls(identity, address, name, None if kind is None else kind.lower(), 0 if problem else count,
                   told is not None, problem, kind, gpus)  # fmt: skip

    def emulated(self, found: int) -> str | None:
        """What an agent there is told to emulate, where NVIDIA's library finds so many GPUs; None for real ones."""
        if found and not self.declared:
            return None
        return f"{self.type or UNNAMED_TYPE}={self.count}"


def living(rows: Iterable[Mapping[str, Any]]) -> list[RayNode]:
    """The nodes that live, in an order that does not change."""
    return sorted((RayNode.of(row) for row in rows if row["Alive"]), key=lambda node: (node.wanted_name, node.id))


def named(nodes: Iterable[RayNode], names: Mapping[str, str]) -> dict[str, str]:
    """A name for each node by its id: that of before, or the one it wants, with a part of its id where that is taken.

    Several nodes of one machine have one address. Whichever had the name first keeps it.
    """
    found = {node.id: names[node.id] for node in nodes if node.id in names}
    taken = set(found.values())
    for node in nodes:
        if node.id not in found:
            name = node.wanted_name
            if name in taken:
                name = f"{name}-{node.id[:8]}"
            found[node.id] = name
            taken.add(name)
    return found


def refuse_no_accelerators(address: str, nodes: Iterable[RayNode]) -> None:
    """Refuse a cluster on which nothing could run, with what was found there."""
    listed = list(nodes)
    if any(node.count for node in listed):
        return
    wrong = [f"{node.wanted_name}: {node.problem}" for node in listed if node.problem]
    raise InputError(
        f"address: {len(listed)} nodes of Ray at {address}, none with accelerators"
        + (f" ({'; '.join(wrong)})" if wrong else "")
        + f"; start them on machines with GPUs, or declare emulated ones: "
        f"ray start … --labels {TYPE_LABEL}=V100,{COUNT_LABEL}=2"
    )
