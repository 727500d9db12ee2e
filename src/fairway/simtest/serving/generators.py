"""Draws the plans of simulated histories: what is served, what is asked for when, and which faults strike when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from fairway.simtest.component import Generator
from fairway.simtest.plan import Plan, Step
from fairway.simtest.serving.application import HARMS, HONEST, MODELS

_SCHEDULERS = ("compass", "compass", "hash", "heft", "jit", "compass:centralised", "esg", "front")
_PLANNED = ("esg", "front", "compass:centralised")

PLACES = (
    "", "turn", "listen", "row-join", "row-load", "row-models", "begin-STAGE", "end-STAGE", "begin-LOAD", "begin-LOOP",
    "end-LOOP", "keep", "kept", "open", "let-go", "received-ask", "received-event", "received-lost", "received-joined",
    "received-notice", "received-row", "received-batch", "received-cancel", "received-planner", "received-ready",
    "received-chunk", "received-lives", "received-ping", "send-event", "sent-event", "send-reply", "sent-reply",
    "send-refused", "sent-refused", "send-chunk", "sent-chunk", "send-batch", "sent-batch", "send-row", "sent-row",
    "send-pong", "sent-pong", "send-ready", "sent-ready", "send-planner", "sent-planner", "send-loaded", "sent-loaded",
    "send-cleared", "sent-cleared", "left",
)  # fmt: skip
"""Where a worker can be struck; the empty one is anywhere."""

WRITES = ("row-join", "row-load", "row-models", "begin-STAGE", "end-STAGE", "begin-LOAD", "begin-LOOP", "end-LOOP")


class _Draw:
    """Draws the parts of one plan."""

    def __init__(self, seed: int, draws: Random) -> None:
        self.draws = draws
        scheduler = draws.choice(_SCHEDULERS)
        self.workers = draws.choice((2, 2, 3, 3, 4))
        self.clients = draws.choice((1, 2, 3))
        self.horizon = draws.uniform(1.0, 4.0)
        self.has_planner = scheduler in _PLANNED
        self.settings: dict[str, Any] = {
            "workers": self.workers,
            "clients": self.clients,
            "scheduler": scheduler,
            "rows_as_messages": draws.random() < 0.5,
            "memory_bytes": draws.choice((None, 9e6, 13e6)),
            "slo_seconds": 1.0 if self.has_planner or draws.random() < 0.3 else None,
            "most_open": draws.choice((1000, 1000, 1000, 4)),
            "stage_limit_seconds": 2.0,
            "load_limit_seconds": 2.0,
            "start_seconds": draws.choice((0.05, 0.2)),
            "latency": draws.choice((2e-4, 2e-3, 2e-2)),
            "lateness": draws.choice((0.0, 0.0, 1e-3, 1e-2)),
            "validated": 0.05,
            "checks_memory": seed % 4 == 0,
        }

    def processes(self) -> list[int]:
        return list(range(self.workers + self.has_planner))

    def worker(self) -> int:
        return self.draws.choice(self.processes())

    def time(self) -> float:
        return self.draws.uniform(0.0, self.horizon)

    def workload(self) -> list[Step]:
        """Requests that do no harm: at random moments, or many at once."""
        draws = self.draws
        count = draws.randint(5, 20)
        at_once = draws.random() < 0.3
        steps = []
        kinds = draws.sample(HONEST, draws.randint(1, len(HONEST)))
        for number in range(1, count + 1):
            at = draws.choice((0.1, 0.5)) if at_once else self.time()
            arguments = {"client": draws.randrange(self.clients), "number": number, "workflow": draws.choice(kinds)}
            if draws.random() < 0.1:
                arguments["deadline"] = draws.uniform(0.01, 1.0)
            steps.append(Step(at, "ask", arguments))
        return steps

    def plan(self, seed: int, generator: str, faults: Sequence[Step]) -> Plan:
        steps = sorted([*self.workload(), *faults], key=lambda step: step.at)
        return Plan("serving", generator, seed, self.settings, tuple(steps))

    def end(self) -> str:
        """The name of a process, as messages know it."""
        draws = self.draws
        kind = draws.random()
        if kind < 0.2:
            return "supervisor"
        return f"client-{draws.randrange(self.clients)}" if kind < 0.5 else f"worker-{self.worker()}"


def _crash(draw: _Draw) -> dict[str, Any]:
    worker = None if draw.draws.random() < 0.3 else draw.worker()
    place = draw.draws.choice(PLACES)
    return {"worker": worker, "place": place, "after": draw.draws.choice((0, 0, 1, 2, 5, 20))}


def _tear(draw: _Draw) -> dict[str, Any]:
    return {"worker": draw.worker(), "place": draw.draws.choice(WRITES), "after": draw.draws.choice((0, 1, 3))}


def _pause(draw: _Draw) -> dict[str, Any]:
    return {"worker": draw.worker(), "seconds": draw.draws.choice((0.01, 0.1, 0.5, 0.9, 1.6))}


def _hang(draw: _Draw) -> dict[str, Any]:
    return {"worker": draw.worker(), "seconds": draw.draws.choice((0.05, 0.5, 2.0, 7.0))}


def _stall(draw: _Draw) -> dict[str, Any]:
    return {"seconds": draw.draws.choice((0.1, 0.5, 1.0, 3.0))}


def _cut(draw: _Draw) -> dict[str, Any]:
    return {"client": f"client-{draw.draws.randrange(draw.clients)}", "worker": draw.worker()}


def _delay(draw: _Draw) -> dict[str, Any]:
    seconds = draw.draws.choice((0.005, 0.02, 0.1, 0.5, 1.0))
    one, other = draw.end(), draw.end()
    return {"sender": draw.draws.choice(("", one)), "receiver": draw.draws.choice(("", other)), "seconds": seconds}


def _partition(draw: _Draw) -> dict[str, Any]:
    one, other = f"worker-{draw.worker()}", draw.end()
    return {"one": one, "other": other, "seconds": draw.draws.choice((0.01, 0.1, 0.4, 0.8))}


def _no_room(draw: _Draw) -> dict[str, Any]:
    return {"count": draw.draws.randint(1, 4)}


def _load(draw: _Draw) -> dict[str, Any]:
    harms = draw.draws.choice((["raise"], ["raise"] * 3, ["raise-silent", "raise-exit"], ["hang"], ["exit"], ["slow"]))
    return {"model": draw.draws.choice(MODELS), "harms": list(harms)}


def _nothing(_: _Draw) -> dict[str, Any]:
    return {}


def _leave(draw: _Draw) -> dict[str, Any]:
    return {"number": draw.draws.randint(1, 12)}


def _client_dies(draw: _Draw) -> dict[str, Any]:
    return {"client": draw.draws.randrange(draw.clients)}


def _hostile(draw: _Draw) -> dict[str, Any]:
    return {
        "client": draw.draws.randrange(draw.clients),
        "number": draw.draws.randint(1000, 10**9),
        "workflow": draw.draws.choice(("harming", "harming-in-loop")),
        "harm": draw.draws.choice(list(HARMS)),
    }


_KINDS: Mapping[str, tuple[Callable[[_Draw], dict[str, Any]], float]] = {
    "crash": (_crash, 4.0),
    "tear": (_tear, 2.0),
    "kill": (lambda draw: {"worker": draw.worker()}, 1.0),
    "pause": (_pause, 2.0),
    "hang": (_hang, 0.5),
    "stall": (_stall, 1.0),
    "cut": (_cut, 4.0),
    "delay": (_delay, 10.0),
    "partition": (_partition, 3.0),
    "no-room": (_no_room, 2.0),
    "vanish": (_nothing, 0.5),
    "load": (_load, 2.0),
    "restart": (_nothing, 0.1),
    "leave": (_leave, 2.0),
    "client-dies": (_client_dies, 0.3),
    "ask": (_hostile, 2.0),
}
"""By kind, how a fault is drawn, and how often in proportion."""


def _faults(draw: _Draw, kinds: Sequence[str], count: int) -> list[Step]:
    weights = [_KINDS[kind][1] for kind in kinds]
    chosen = draw.draws.choices(kinds, weights, k=count)
    return [Step(draw.time(), kind, _KINDS[kind][0](draw), is_fault=True) for kind in chosen]


def uniform(seed: int, draws: Random) -> Plan:
    """Faults of all kinds at any time."""
    draw = _Draw(seed, draws)
    return draw.plan(seed, "uniform", _faults(draw, list(_KINDS), draws.randint(45, 80)))


def swarm(seed: int, draws: Random) -> Plan:
    """Faults of a few kinds only, so that none of the others keeps the system from getting into deep water."""
    draw = _Draw(seed, draws)
    kinds = draws.sample(list(_KINDS), draws.randint(1, 5))
    return draw.plan(seed, "swarm", _faults(draw, kinds, draws.randint(40, 110)))


# Faults that are aimed at a moment


def _after_acceptance(draw: _Draw, at: float) -> list[Step]:
    """The worker that has just taken a request dies, and perhaps the one that takes it next."""
    place = draw.draws.choice(("received-ask", "received-ask-again", "begin-STAGE", "send-event", "sent-event"))
    again = _trap(draw, at, "received-ask-again", after=0)
    return [_trap(draw, at, place), *([again] if draw.draws.random() < 0.4 else [])]


def _around_a_reply(draw: _Draw, at: float) -> list[Step]:
    """A worker dies just before or just after it has answered, or a line breaks with the answer on its way."""
    places = ("send-reply", "sent-reply", "end-LOOP", "send-chunk", "sent-chunk", "kept", "send-batch-done", "let-go")
    client = draw.draws.randrange(draw.clients)
    slow = {"sender": "", "receiver": f"client-{client}", "word": "reply", "seconds": 0.3}
    cuts = [
        Step(at + 0.1 * number, "cut", {"client": f"client-{client}", "worker": worker}, is_fault=True)
        for number, worker in enumerate(draw.processes())
    ]
    if draw.draws.random() < 0.5:
        return [_trap(draw, at, draw.draws.choice(places))]
    return [Step(max(0.0, at - 0.1), "delay", slow, is_fault=True), *cuts]


def _during_a_load(draw: _Draw, at: float) -> list[Step]:
    """A worker dies, hangs or is stopped while it loads a model, or its load does not go well."""
    harms = draw.draws.choice((["raise"], ["raise"] * 3, ["hang"], ["exit"], ["slow"], ["slow", "exit"]))
    steps = [Step(at, "load", {"model": model, "harms": list(harms)}, is_fault=True) for model in MODELS]
    steps.append(
        _trap(draw, at, draw.draws.choice(("begin-LOAD", "row-models", "turn")), after=draw.draws.choice((0, 3)))
    )
    return draw.draws.sample(steps, draw.draws.randint(1, 3))


def _during_recovery(draw: _Draw, at: float) -> list[Step]:
    """A worker dies, and while the others learn of it, another one does, or news of it are late."""
    draws = draw.draws
    first, second = draw.worker(), draw.worker()
    word = draws.choice(("lost", "joined", "lives", "notice", "ping", "row", "ready", "planner"))
    late = {"sender": "", "receiver": f"worker-{second}", "word": word, "seconds": draws.choice((0.05, 0.3, 0.9))}
    places = (
        "received-lost", "received-joined", "received-lives", "received-event", "listen", "row-join", "received-row",
        "received-planner", "received-ready", "send-ready", "received-batch-done",
    )  # fmt: skip
    others = [
        _trap(draw, at, draws.choice(places), worker=second),
        Step(at, "delay", late, is_fault=True),
        Step(
            at + draws.uniform(0.0, 0.3),
            "pause",
            {"worker": second, "seconds": draws.choice((0.3, 0.9))},
            is_fault=True,
        ),
        Step(at + draws.uniform(0.0, 0.3), "hang", {"worker": second, "seconds": 2.5}, is_fault=True),
        Step(at, "stall", {"seconds": draws.choice((0.2, 1.0))}, is_fault=True),
        Step(at + draws.uniform(0.0, 0.5), "kill", {"worker": second}, is_fault=True),
    ]
    return [Step(at, "kill", {"worker": first}, is_fault=True), *draws.sample(others, draws.randint(1, 3))]


def _hostile_crowd(draw: _Draw, at: float) -> list[Step]:
    """Several requests that do harm come together with those that do not."""
    return [
        Step(at + draw.draws.uniform(0.0, 0.2), "ask", _hostile(draw), is_fault=True)
        for _ in range(draw.draws.randint(2, 4))
    ]


def _trap(draw: _Draw, at: float, place: str, *, worker: int | None = None, after: int | None = None) -> Step:
    kind = "tear" if place in WRITES and draw.draws.random() < 0.5 else "crash"
    after = draw.draws.choice((0, 0, 1, 3)) if after is None else after
    return Step(at, kind, {"worker": worker, "place": place, "after": after}, is_fault=True)


_SCHEMES = (_after_acceptance, _around_a_reply, _during_a_load, _during_recovery, _during_recovery, _hostile_crowd)


def adversarial(seed: int, draws: Random) -> Plan:
    """Faults aimed at the moments in which the most is under way."""
    draw = _Draw(seed, draws)
    steps = [step for _ in range(draws.randint(3, 8)) for step in draws.choice(_SCHEMES)(draw, draw.time())]
    steps += _faults(draw, ["delay", "cut", "no-room", "leave", "partition"], draws.randint(30, 50))
    return draw.plan(seed, "adversarial", steps)


GENERATORS: Mapping[str, Generator] = {"uniform": uniform, "swarm": swarm, "adversarial": adversarial}
"""By name."""
