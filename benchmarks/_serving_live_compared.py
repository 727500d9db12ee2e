"""The parts of `live_serving` that compare: with Ray Serve, with the simulator, with another scheduler."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import mean, median
from typing import Any

from benchmarks._report import Result, ratios, spread
from benchmarks._serving_live_documents import LongDocument
from benchmarks._serving_live_driver import Driver
from benchmarks._serving_live_load import Load
from benchmarks._serving_live_settings import Served, Settings, say
from benchmarks._serving_live_simulated import simulated
from fairway.live.serving.runtime.tally import PLANNING_BOUNDS
from fairway.live.serving.supervise.environment import stage_environment

TRIVIAL: dict[str, Any] = {
    "target": "benchmarks._serving_live_trivial:trivial",
    "requests": "benchmarks._serving_live_trivial:Trivial",
    "workers": 3,
}
FAST = {"RAY_SERVE_THROUGHPUT_OPTIMIZED": "1"}
"""The setting that Ray's guide to high throughput names; everything that depends on it follows."""


def trivial(settings: Settings) -> Iterator[Result]:
    """Latency and throughput, with Ray as it comes, then with Ray as fast as it can be set."""
    seconds = 1.0 if settings.quick else 4.0
    targets = (settings.target(20.0), settings.target(10.0))
    for peer, environment in (("Ray Serve, as it comes", {}), ("Ray Serve, tuned", FAST)):
        say(f"three trivial stages, against {peer}")
        with Driver("ours", **TRIVIAL) as ours, Driver("ray", environment) as ray:
            for driver in (ours, ray):
                driver.clients(8, 2 * seconds)
            turns = [(ours.one_client(seconds), ray.clients(1, seconds)) for _ in range(settings.repeats)]
            yield from rows_of("three stages, 1 client", peer, turns, *targets)
            turns = [(ours.clients(1, seconds), ray.clients(1, seconds)) for _ in range(settings.repeats)]
            yield from rows_of("three stages, 1 client, asyncio", peer, turns, None, None)
            turns = [(ours.clients(32, seconds), ray.clients(32, seconds)) for _ in range(settings.repeats)]
            yield from rows_of("three stages, 32 clients", peer, turns, *targets)
    say("three trivial stages over HTTP")
    with Driver("ours-http", workers=TRIVIAL["workers"]) as ours, Driver("ray-http", FAST) as ray:
        for driver in (ours, ray):
            driver.clients(8, 2 * seconds)
        for count in (1, 32):
            turns = [(ours.clients(count, seconds), ray.clients(count, seconds)) for _ in range(settings.repeats)]
            name = f"three stages over HTTP, {count} client{'s' * (count > 1)}"
            yield from rows_of(name, "Ray Serve, tuned", turns, None, None)


def rows_of(
    name: str, peer: str, turns: Sequence[tuple[Load, Load]], p50: float | None, throughput: float | None
) -> Iterator[Result]:
    for what, unit, target in (("p50", "s", p50), ("throughput", "/s", throughput)):
        mine, theirs = ([getattr(load, what) for load in loads] for loads in zip(*turns, strict=True))
        each = ratios(theirs, mine) if what == "p50" else ratios(mine, theirs)
        yield Result(
            name=f"{name}: {what}",
            unit=unit,
            ours=median(mine),
            peer_name=peer,
            peer=median(theirs),
            ratio=median(theirs) / median(mine) if what == "p50" else median(mine) / median(theirs),
            target=target,
            spread=spread(each),
            extra={
                "repeats": len(turns),
                "ours_p99": median(ours.p99 for ours, _ in turns),
                "peer_p99": median(theirs.p99 for _, theirs in turns),
            },
        )


class Turns:
    """What came of the turns of one side; the first is for warming up and does not count."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.loads: list[Load] = []
        self._counts: list[dict[str, Any]] = []

    def take(self, moments: list[float], numbers: list[int]) -> None:
        self.loads.append(self._driver.arrivals(moments, numbers))
        self._counts.append(self._driver.counts())

    @property
    def means(self) -> list[float]:
        return [load.mean for load in self.loads[1:]]

    @property
    def p99(self) -> float:
        return median(load.p99 for load in self.loads[1:])

    @property
    def served_means(self) -> list[float]:
        """Mean latencies from when a worker had the request to when it had answered, without the way to the client."""
        return [
            (now["latency_seconds"] - then["latency_seconds"]) / (now["replied"] - then["replied"])
            for then, now in pairwise(self._counts)
        ]

    def counted(self, name: str) -> int:
        """Over the turns that count."""
        return int(self._counts[-1][name] - self._counts[0][name])


def take_turns(served: Served, repeats: int, name: str, **drivers: Driver) -> list[Turns]:
    sides = [Turns(driver) for driver in drivers.values()]
    for turn in range(repeats + 1):
        say(f"{name}, turn {turn} of {repeats}")
        for side in sides:
            side.take(*served.requests(turn))
    return sides


def mean_latency(name: str, peer: str, mine: Turns, other: Turns, target: float | None, **extra: Any) -> Result:
    each = ratios(other.means, mine.means)
    return Result(
        name=f"{name}: mean latency",
        unit="s",
        ours=median(mine.means),
        peer_name=peer,
        peer=median(other.means),
        ratio=median(other.means) / median(mine.means),
        target=target,
        spread=spread(each),
        extra={"repeats": len(each), "ours_p99": mine.p99, "peer_p99": other.p99, **extra},
    )


def documents(settings: Settings) -> Iterator[Result]:
    """Documents against `serve.multiplexed`: short pages, Ray with more room, and pages as the example draws them."""
    short = settings.served()
    name, half = "short pages, 60 % of capacity", short.profile.half
    repeats, fewer = settings.repeats, min(2, settings.repeats)
    targets = (settings.target(2.0), settings.target(10.0))
    yield from _against_ray(name, short, half, repeats, *targets)
    yield from _against_ray(f"{name}, Ray with room for {half + 1} models", short, half + 1, fewer, None, None)
    long = settings.served(LongDocument)
    yield from _against_ray("long pages, 60 % of capacity", long, half, fewer, *targets)
    yield _with_room_for_all("long pages, 60 % of capacity", long, fewer)


def _against_ray(
    name: str, served: Served, most_models: int, repeats: int, target: float | None, most_loads: float | None
) -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="fairway-") as directory:
        given = served.ours
        del given["memory_bytes"]
        environment = {**stage_environment(1), **FAST}  # the first is what our workers have
        others = Driver("ray-documents", environment, **given, most_models=most_models, directory=directory)
        with Driver("ours", **served.ours) as ours, others as ray:
            mine, theirs = take_turns(served, repeats, name, ours=ours, ray=ray)
    yield mean_latency(name, "Ray Serve, multiplexed", mine, theirs, target, requests_per_second=served.rate,
                        budget_bytes=served.profile.budget, peer_models=most_models)  # fmt: skip
    uses, loads = mine.counted("hits") + mine.counted("misses"), mine.counted("loads")
    there = theirs.counted("loads") / theirs.counted("uses")
    yield Result(f"{name}: loads per use of a model", "%", 100 * loads / uses, target=most_loads,
                 extra={"uses": uses, "loads": loads, "peer_percent": 100 * there})  # fmt: skip


def _with_room_for_all(name: str, served: Served, repeats: int) -> Result:
    """Ours with memory for every model: what no way of managing less of it could be faster than."""
    given = {**served.ours, "memory_bytes": served.profile.budget * served.profile.models}
    with Driver("ours", **given) as ours:
        (mine,) = take_turns(served, repeats, f"{name}, room for all models", ours=ours)
    return Result(f"{name}, room for all models: mean latency", "s", median(mine.means),
                  extra={"repeats": len(mine.means), "loads": mine.counted("loads")})  # fmt: skip


def simulator(settings: Settings) -> Iterator[Result]:
    """The documents live, and the same requests in the simulator, which has no clients: workers' latencies count."""
    served = settings.served()
    with Driver("ours", **served.ours) as ours:
        (mine,) = take_turns(served, settings.repeats, "for the simulator", ours=ours)
    turns = [served.requests(turn) for turn in range(settings.repeats + 1)]
    found = simulated(served.profile.file, turns, settings.seed)
    live, virtual = mean(mine.served_means), mean(found.means)
    by_turn = [one / other - 1 for one, other in zip(mine.served_means, found.means, strict=True)]
    yield Result("short pages, live against simulated: mean latency", "%", 100 * abs(live / virtual - 1),
                 target=settings.target(10.0),
                 extra={"difference": live / virtual - 1, "live_seconds": live, "simulated_seconds": virtual,
                        "client_seconds": mean(mine.means), "difference_by_turn": by_turn,
                        "repeats": settings.repeats})  # fmt: skip
    hits = mine.counted("hits") / (mine.counted("hits") + mine.counted("misses"))
    yield Result("short pages, live against simulated: cache hit rate", "points", 100 * abs(hits - found.hit_rate),
                 target=settings.target(3.0),
                 extra={"live_hit_rate": hits, "simulated_hit_rate": found.hit_rate})  # fmt: skip


def schedulers(settings: Settings) -> Iterator[Result]:
    """Compass and Hash, live."""
    served = settings.served()
    with Driver("ours", **served.ours) as ours, Driver("ours", **served.ours, scheduler="hash") as hashed:
        compass, other = take_turns(served, settings.repeats, "Compass and Hash", compass=ours, hash=hashed)
    yield mean_latency("short pages, Compass", "Hash, live", compass, other, settings.target(2.0),
                        ours_loads=compass.counted("loads"), peer_loads=other.counted("loads"))  # fmt: skip


def planning(settings: Settings) -> Iterator[Result]:
    """What the scheduler's decisions take inside workers that are at work: each, and all of a request together."""
    for name, options in (("three stages, 32 clients", TRIVIAL), ("documents, 8 clients", settings.served().ours)):
        say(f"planning: {name}")
        with Driver("ours", **options) as ours:
            ours.clients(8, 2 if settings.quick else 5)
            before = ours.counts()
            ours.clients(32 if options is TRIVIAL else 8, 2 if settings.quick else 10)
            after = ours.counts()
        counts = [now - then for now, then in zip(after["planning"], before["planning"], strict=True)]
        requests = after["replied"] - before["replied"]
        spent = after["planning_seconds"] - before["planning_seconds"]
        extra = {"decisions": sum(counts), "requests": requests}
        yield Result(f"a decision, median: {name}", "s", _median_of(counts), target=settings.target(1e-4), extra=extra)
        yield Result(f"all decisions on a request's way, mean: {name}", "s", spent / requests, extra=extra)


def _median_of(counts: Sequence[int]) -> float:
    """The upper bound of the bucket that the median is in."""
    below = 0
    for bound, count in zip(PLANNING_BOUNDS, counts, strict=False):
        below += count
        if below >= sum(counts) / 2:
            return bound
    return float("inf")
