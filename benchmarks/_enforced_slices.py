"""What enforced slices keep to: stages beside each other against their profiles, bad neighbours, and the simulator."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np

from fairway.configure.slices.parts import Slice
from fairway.live.serving.application.measurements import profile_text
from fairway.live.serving.application.profiling import ProfileOptions, Profiler
from fairway.live.serving.application.samples import samples_of
from fairway.live.serving.clients.client import ServingClient
from fairway.live.serving.clients.client_protocol import RequestFailedError
from fairway.live.serving.supervise.supervisor import Supervisor, tallies
from fairway.sim.arrivals import Arrivals, poisson
from fairway.sim.scenario_file import parse_scenario
from fairway.sim.serving import ServingOptions, simulate_serving

_STAGES = "benchmarks._sliced_stages"
PARTS = {"quarter": Slice(250), "rest": Slice(750)}
_BAD = {"quarter": Slice(250), "bad": Slice(750, 100_000_000)}


@dataclass(frozen=True)
class Measured:
    """A profile on slices: its file, and the seconds of each stage on its own slice."""

    path: Path
    seconds: dict[str, float]


def profiled(directory: Path) -> Measured:
    """Measure both stages on their slices, and write the profile with the slices that models have."""
    profiler = Profiler(f"{_STAGES}:TWO", ProfileOptions((1,), (1,), 5, parts=tuple(PARTS.values())))
    measured = profiler.measure({name: samples_of(served) for name, served in profiler.application.workflows.items()})
    document = measured.document(memory_bytes=100_000_000)
    document["slices"] = {name: own.part for name, own in PARTS.items()}
    path = directory / "profile.yaml"
    path.write_text(profile_text(document, "Measured by benchmarks.slices."), encoding="utf-8")
    seconds = {
        name: next(iter(stages.values())).on_parts[PARTS[name].thousandths][1]
        for name, stages in measured.stages.items()
    }
    return Measured(path, seconds)


@contextmanager
def served(
    name: str, slices: dict[str, Slice], profile: Path | None = None
) -> Iterator[tuple[Supervisor, ServingClient]]:
    """One worker with slices."""
    with tempfile.TemporaryDirectory(prefix="fairway-") as directory:
        supervisor = Supervisor.of(
            f"{_STAGES}:{name}", directory=Path(directory) / "s", workers=1, slices=tuple(slices.items()),
            profile=profile,
        )  # fmt: skip
        with supervisor, ServingClient(supervisor.settings.directory) as client:
            yield supervisor, client


def both_busy(measured: Measured, seconds: float) -> dict[str, float]:
    """Both stages asked for all of the time: how far the mean time of each is from its profile, in percent."""
    with served("TWO", PARTS, measured.path) as (supervisor, client):
        for name in PARTS:
            client.ask(name, number=1.0)
        before = _stage_times(supervisor)
        until = time.monotonic() + seconds

        def ask(name: str) -> None:
            while time.monotonic() < until:
                client.ask(name, number=1.0)

        threads = [threading.Thread(target=ask, args=(name,)) for name in PARTS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        after = _stage_times(supervisor)
    return {
        name: 100
        * ((after[name][0] - before[name][0]) / (after[name][1] - before[name][1]) / measured.seconds[name] - 1)
        for name in PARTS
    }


def _stage_times(supervisor: Supervisor) -> dict[str, tuple[float, int]]:
    """By workflow, the seconds and the number of its runs so far."""
    (tally,) = tallies(supervisor.settings).values()
    names = supervisor.workflows
    return {
        name: (tally["run"][number, 0]["total"], sum(tally["run"][number, 0]["counts"]))
        for number, name in enumerate(names)
        if (number, 0) in tally["run"]
    }


def slowed_by_a_spinner(turns: int, *, held: bool) -> list[float]:
    """By how many percent a stage takes longer while its neighbour spins in four processes, turn by turn.

    If they are not `held`, both have processes of their own, but nothing bounds these.
    """
    found = []
    with ExitStack() as both:
        if held:
            _, client = both.enter_context(served("ALL", _BAD))
            neighbour = client
        else:
            _, client = both.enter_context(served("quarter", {}))
            _, neighbour = both.enter_context(served("bad", {}))
        client.ask("quarter", number=1.0)
        neighbour.ask("bad", wish="0.01")
        for _ in range(turns):
            alone = _times(client, 1.0)
            spins = threading.Thread(target=lambda: neighbour.ask("bad", wish="2.0"))
            spins.start()
            time.sleep(0.3)
            beside = _times(client, 1.0)
            spins.join()
            found.append(100 * (mean(beside) / mean(alone) - 1))
    return found


def _times(client: ServingClient, seconds: float) -> list[float]:
    until = time.monotonic() + seconds
    times: list[float] = []
    while time.monotonic() < until or not times:
        began = time.monotonic()
        client.ask("quarter", number=1.0)
        times.append(time.monotonic() - began)
    return times


def touched_by_a_greedy_one() -> tuple[int, str]:
    """How many requests and processes of a neighbour are lost while a model takes memory without end; its answer."""
    lost, answer = 0, "nothing"
    with served("ALL", _BAD) as (supervisor, client):
        client.ask("quarter", number=1.0)
        ended = threading.Event()

        def ask() -> None:
            nonlocal answer
            try:
                client.ask("bad", wish="memory")
            except RequestFailedError as error:
                answer = str(error)
            ended.set()

        thread = threading.Thread(target=ask)
        thread.start()
        while not ended.is_set():
            try:
                client.ask("quarter", number=1.0)
            except RequestFailedError:
                lost += 1
        thread.join()
        lost += supervisor.restarts
    return lost, answer


def live_against_simulated(measured: Measured, requests: int, seed: int) -> tuple[float, float]:
    """The mean latency of the same requests, live and simulated, at half of what both slices can do."""
    rate = 0.5 * sum(1.0 / seconds for seconds in measured.seconds.values())
    shares = np.array([1.0 / seconds for seconds in measured.seconds.values()])
    arrivals = poisson(requests, rate, shares / shares.sum(), seed)
    scenario = parse_scenario(measured.path.read_text(encoding="utf-8"), str(measured.path))
    record = simulate_serving(scenario, arrivals, "compass", ServingOptions(discard=0.0, keep_runs=True))
    simulated = float(np.mean(record.requests.finish - record.requests.arrival))
    with served("TWO", PARTS, measured.path) as (_, client):
        for name in PARTS:
            client.ask(name, number=1.0)
        latencies = _asked(client, arrivals, list(measured.seconds))
    return mean(latencies), simulated


def _asked(client: ServingClient, arrivals: Arrivals, names: list[str]) -> list[float]:
    latencies: list[float] = []

    def ask(name: str) -> None:
        began = time.monotonic()
        client.ask(name, number=1.0)
        latencies.append(time.monotonic() - began)

    threads, start = [], time.monotonic()
    for moment, workflow in zip(arrivals.time.tolist(), arrivals.workflow.tolist(), strict=True):
        time.sleep(max(start + moment - time.monotonic(), 0.0))
        thread = threading.Thread(target=ask, args=(names[workflow],))
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    return latencies
