"""The part of `live_serving` with a deadline: up to which rate do two workers read 95 % of all pages in time?

Pages are short ones of the example, and have to be read within four times what a page takes that is alone. The rate is
bisected for Fairway under its scheduler `fairway` and under `compass`, and for Ray Serve with the same stages; a
request that is refused is not in time. All have memory for every model. Then the simulator runs the requests of the
trials under `fairway`, with the measured profile: what it says is in time, and what was.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

import fairway
from benchmarks._report import Result
from benchmarks._serving_live_documents import _DIFFERENT, WORKERS, Document
from benchmarks._serving_live_driver import Driver
from benchmarks._serving_live_load import poisson
from benchmarks._serving_live_settings import Settings, say
from examples.document_reading.application import read_document
from fairway.live.serving.application.measurements import profile_text
from fairway.live.serving.application.profiling import ProfileOptions, Profiler
from fairway.live.serving.supervise.environment import stage_environment
from fairway.report.serving.metrics import summarize_serving
from fairway.sim.arrivals import Arrivals
from fairway.sim.held_rate import capacity, held_rate
from fairway.sim.scenario import Scenario
from fairway.sim.scenario_file import parse_scenario
from fairway.sim.serving import ServingOptions, simulate_serving

TARGET = "benchmarks._serving_live_in_time:read"
PART = 0.95
_TIMES_ALONE = 4.0
_FEW, _MANY = 40, 150
"""Requests of a trial."""


@fairway.workflow(name="read-page")
def read(image: bytes) -> Any:
    """The example's reading of documents, without its SLO."""
    return read_document(image)


class Page(Document):
    """A short page."""

    NAME = "benchmarks._serving_live_in_time:Page"

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.is_sound = False

    @property
    def workflow(self) -> str:
        return "read-page"


class Trials:
    """Requests at rates of a search, and what came of them."""

    def __init__(self, driver: Driver, deadline: float, requests: int, seed: int) -> None:
        self._driver, self._deadline, self._requests, self._seed = driver, deadline, requests, seed
        self.tried: list[tuple[float, float]] = []

    def moments(self, rate: float) -> list[float]:
        """The same requests at any rate, but for their pace."""
        return poisson(rate, self._requests, self._seed)

    def in_time(self, rate: float) -> float:
        numbers = list(range(self._requests))
        told = self._driver.tell(arrivals=self.moments(rate), inputs=numbers, deadline=self._deadline)
        found = float(told["in_time"])
        say(f"  {rate:.2f}/s: {found:.1%} in time")
        self.tried.append((rate, found))
        return found


def in_time(settings: Settings) -> Iterator[Result]:
    """The rates, and the part in time live against simulated."""
    requests = _FEW if settings.quick else _MANY
    say("measuring the stages and models of pages")
    with tempfile.TemporaryDirectory(prefix="fairway-") as directory:
        profile = Path(directory) / "profile.yaml"
        profile.write_text(_measured(3 if settings.quick else 7, 4 if settings.quick else _DIFFERENT))
        scenario = parse_scenario(profile.read_bytes(), str(profile))
        deadline = _TIMES_ALONE * scenario.workflows[0].critical_path().seconds
        guess = capacity(scenario) / 2
        given: dict[str, Any] = {
            "target": TARGET, "requests": Page.NAME, "profile": str(profile), "workers": WORKERS,
        }  # fmt: skip
        systems: dict[str, Driver] = {
            name: Driver("ours", **given, scheduler=name, slo_seconds=deadline) for name in ("fairway", "compass")
        }
        if find_spec("ray") is not None and find_spec("ray.serve") is not None:
            environment = {**stage_environment(1), "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1"}
            systems["Ray Serve"] = Driver("ray-documents", environment, **given, most_models=8, directory=directory)
        rates: dict[str, float] = {}
        trials: dict[str, Trials] = {}
        for name, system in systems.items():
            say(f"pages within {deadline:.2f} s, {name}")
            with system as driver:
                driver.clients(2, 3.0)
                trials[name] = Trials(driver, deadline, requests, settings.seed)
                rates[name] = held_rate(trials[name].in_time, PART, guess, 0.1).rate
        for name, rate in rates.items():
            if name != "fairway":
                yield Result(
                    f"pages within {deadline:.2f} s, {WORKERS} workers: {PART:.0%} in time", "requests/s",
                    rates["fairway"], name, rate, rates["fairway"] / rate if rate else None, settings.target(1.3),
                    extra={"requests": requests, "tried": trials[name].tried},
                )  # fmt: skip
        virtual = [
            _simulated(scenario, deadline, trials["fairway"].moments(rate), settings.seed)
            for rate, _ in trials["fairway"].tried
        ]
        live = [found for _, found in trials["fairway"].tried]
        apart = [100 * abs(one - other) for one, other in zip(live, virtual, strict=True)]
        yield Result(
            "pages, live against simulated: in time", "points", 100 * abs(mean(live) - mean(virtual)),
            target=settings.target(2.0),
            extra={"rates": [rate for rate, _ in trials["fairway"].tried], "live": live, "simulated": virtual,
                   "apart": apart},
        )  # fmt: skip


def _measured(repeats: int, pages: int) -> str:
    """A profile with the times of batches, on so many pages."""
    profiler = Profiler(TARGET, ProfileOptions(batches=(1, 2, 4), repeats=repeats, at_once=WORKERS))
    found = profiler.measure({"read-page": [{"image": Page.page(seed).image} for seed in range(pages)]})
    memory = 2 * sum(model.bytes for model in found.models.values())
    return profile_text(found.document(workers=WORKERS, memory_bytes=memory), "Measured for a benchmark.")


def _simulated(scenario: Scenario, deadline: float, moments: list[float], seed: int) -> float:
    """The part in time of the same requests in the simulator; models are there, as live."""
    count = len(moments)
    warm = np.linspace(0.0, 20.0, 20)  # so that all models are in memory
    arrivals = Arrivals(
        np.concatenate([warm, 30.0 + np.array(moments)]),
        np.zeros(20 + count, np.int64),
        np.random.default_rng(seed).random(20 + count),
        np.ones(20 + count),
    )
    named = replace(scenario, slo_seconds={scenario.workflows[0].name: deadline})
    record = simulate_serving(named, arrivals, "fairway", ServingOptions(seed=seed, discard=20 / (20 + count)))
    return summarize_serving(record)["slo_hit_rate"] or 0.0
