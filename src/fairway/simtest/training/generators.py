"""Draws plans: what clients do, and what is done to the machine.

`uniform` draws every kind of fault with the same chance. `swarm` (Groce et al., "Swarm Testing", 2012) switches a
random part of the kinds on, so that a history has many of few kinds, which find what a mixture of all hides.
`adversarial` aims: kills and losses of power at the moments just before and after commits, changes of leases and saves
of checkpoints, with messages that are late or doubled around them.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from fairway.simtest.plan import Plan, Step
from fairway.simtest.training.faults import PLACES
from fairway.simtest.training.jobs import HOSTILE

_CLUSTERS = ("v100=1", "v100=2", "v100=1,k80=1", "v100=2,k80=1")
_POLICIES = ("fifo", "max-min-fairness", "max-min-fairness", "max-min-fairness:space-sharing")
_TYPES = ("ResNet-18 (batch size 16)", "ResNet-18 (batch size 64)", "ResNet-50 (batch size 16)")
_SECONDS = 8.0
"""How long clients and faults go on."""

_WAYS = ("late-message", "doubled-message", "reordered-message")

Draws = Callable[[Random], tuple[str, dict[str, Any]]]


def _kill_soon(draw: Random) -> tuple[str, dict[str, Any]]:
    return "kill-soon", {"process": draw.choice(("controller", "agent")), "steps": draw.randint(1, 60)}


def _at_place(draw: Random) -> tuple[str, dict[str, Any]]:
    place = draw.choice(PLACES[draw.choice(tuple(PLACES))])
    return "at-place", {"place": place, "nth": draw.randint(1, 4), "power": draw.random() < 0.3}


def _messages(draw: Random) -> tuple[str, dict[str, Any]]:
    return "messages", {"how": draw.choice(_WAYS), "count": draw.randint(2, 12)}


_DRAWS: dict[str, Draws] = {
    "kill-controller": lambda _: ("kill-controller", {}),
    "kill-agent": lambda _: ("kill-agent", {}),
    "kill-keeper": lambda draw: ("kill-keeper", {"which": draw.randrange(8)}),
    "kill-soon": _kill_soon,
    "at-place": _at_place,
    "lose-power": lambda _: ("lose-power", {}),
    "pause": lambda draw: (
        "pause",
        {"process": draw.choice(("controller", "agent")), "seconds": round(draw.choice((0.2, 2.0, 12.0)), 3)},
    ),
    "pause-keeper": lambda draw: ("pause-keeper", {"which": draw.randrange(8), "seconds": draw.choice((0.3, 3.0))}),
    "second-controller": lambda draw: ("second-controller", {"seconds": draw.choice((0.5, 2.0))}),
    "partition": lambda draw: ("partition", {"seconds": draw.choice((0.3, 2.0, 12.0))}),
    "break-connections": lambda _: ("break-connections", {}),
    "messages": _messages,
    "set-clock": lambda draw: ("set-clock", {"seconds": draw.choice((-3600.0, -1.0, 1.0, 3600.0))}),
    "fill-disk": lambda draw: (
        "fill-disk",
        {"disk": draw.choice(("store", "agent")), "seconds": draw.choice((0.3, 2.0))},
    ),
    "corrupt-file": lambda draw: ("corrupt-file", {"which": draw.randrange(8), "how": draw.randrange(5)}),
}

_MESSAGE_STEPS = 6
"""Of the steps that let messages suffer, every history has some more: they cost little, and each hits several."""


def uniform(seed: int, draw: Random) -> Plan:
    """Every kind of fault, each as often as any other."""
    return _plan("uniform", seed, draw, _drawn(draw, tuple(_DRAWS), draw.randint(3, 6)))


def swarm(seed: int, draw: Random) -> Plan:
    """A random part of the kinds, each of them often."""
    kinds = [kind for kind in _DRAWS if draw.random() < 0.3] or ["messages"]
    return _plan("swarm", seed, draw, _drawn(draw, kinds, draw.randint(3, 7)))


def adversarial(seed: int, draw: Random) -> Plan:
    """Faults at the worst moments: around commits, changes of leases and saves of checkpoints."""
    steps: list[Step] = []
    for _ in range(draw.randint(3, 6)):
        at = _moment(draw)
        what, arguments = _at_place(draw)
        steps.append(Step(at, what, arguments, is_fault=True))
        if draw.random() < 0.5:
            steps.append(Step(at, *_messages(draw), is_fault=True))
        if draw.random() < 0.2:
            what, arguments = _DRAWS[draw.choice(("second-controller", "pause", "partition"))](draw)
            steps.append(Step(round(at + 0.1, 3), what, arguments, is_fault=True))
    return _plan("adversarial", seed, draw, steps)


GENERATORS = {"uniform": uniform, "swarm": swarm, "adversarial": adversarial}


def _drawn(draw: Random, kinds: list[str] | tuple[str, ...], count: int) -> list[Step]:
    return [Step(_moment(draw), *_DRAWS[draw.choice(kinds)](draw), is_fault=True) for _ in range(count)]


def _moment(draw: Random) -> float:
    return round(draw.uniform(0.3, _SECONDS), 3)


def _plan(generator: str, seed: int, draw: Random, faults: list[Step]) -> Plan:
    emulate = draw.choice(_CLUSTERS)
    settings = {"emulate": emulate, "policy": draw.choice(_POLICIES), "round_seconds": draw.choice((2.0, 2.0, 4.0))}
    faults += [Step(_moment(draw), *_messages(draw), is_fault=True) for _ in range(_MESSAGE_STEPS)]
    steps = [*_workload(draw, emulate), *faults]
    return Plan("training", generator, seed, settings, tuple(sorted(steps, key=lambda step: step.at)))


def _workload(draw: Random, emulate: str) -> list[Step]:
    steps: list[Step] = []
    for number in range(draw.choice((2, 3, 3, 4))):
        key, at = f"key-{number}", round(draw.choice((0.1, draw.uniform(0.1, 4.0))), 3)
        steps.append(Step(at, "submit", {"key": key, "spec": _spec(draw, emulate)}))
        if draw.random() < 0.25:
            steps.append(Step(round(at + draw.uniform(0.0, 5.0), 3), "cancel", {"key": key}))
    if draw.random() < 0.15:
        worker = draw.choice(_workers(emulate))
        at = round(draw.uniform(0.5, 4.0), 3)
        for on in (True, False):
            steps.append(Step(at, "drain", {"workers": [worker], "on": on}))
            at = round(at + draw.uniform(0.5, 4.0), 3)
    return steps


def _workers(emulate: str) -> list[list[Any]]:
    pairs = [part.split("=") for part in emulate.split(",")]
    return [[kind, number] for kind, count in pairs for number in range(int(count))]


def _spec(draw: Random, emulate: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"run": ["steps"], "steps": draw.randint(1, 12), "grace": 1, "checkpoint": {"seconds": 2}}
    kind = draw.random()
    if kind < 0.1:
        spec["run"] = [draw.choice(HOSTILE)]
    elif kind < 0.2:
        spec["run"] = ["fail"]
    spec["retries"] = draw.choice((0, 0, 1, 3))
    if draw.random() < 0.15:
        spec["preemptible"] = False
    if draw.random() < 0.25:
        spec["job_type"] = draw.choice(_TYPES)
        spec["steps"] *= 10
    else:
        spec["throughputs"] = {"v100": 2.0, "k80": 1.0}
    if "v100=2" in emulate and draw.random() < 0.4:
        spec["resources"] = {"accelerators": "v100:2"}
    if draw.random() < 0.3:
        spec["team"] = draw.choice(("red", "blue"))
    if draw.random() < 0.25:
        spec["priority_class"] = draw.choice(("urgent", "soon", "later"))
    if draw.random() < 0.25:
        spec.setdefault("resources", {})["cpus"] = draw.choice((1, 2, 3))
    return spec
