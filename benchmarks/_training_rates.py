"""Which arrival rates does the cluster sustain under each policy: mean completion times from 0.4 to 7.0 jobs per hour.

Jobs 4000 to 4999 on 36 accelerators of each of three types, under our engine; a rate is sustained if their mean
completion time is under 40 hours. Rates go up until one is not sustained. Beside them stand the authors' figures, from
the notebooks of their repository (stanford-futuredata/gavel, seed 0). A run ends, as not sustained, when its jobs are
not done 1,000 hours after the last of them has come.

All points take hours, so they can be kept in a file as they are measured, a line each: another run then measures only
those that are missing. A point counts only for the source from which it was measured.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks._report import Result
from benchmarks._training_runs import WINDOW, mean_hours, run
from fairway.dashboard.of_loads import LoadPage
from fairway.dashboard.page import page_with
from fairway.dashboard.run_file import document
from fairway.sim.submissions import TrainingOptions
from tests.figures import published_hours

SUSTAINED_HOURS = 40.0
_PATIENCE_HOURS = 1000.0
_QUICK_WINDOW = (100, 160)
_SOURCE = Path(__file__).parent.parent / "src" / "fairway"
_DECIDES = ("allocate", "engine/training", "profiles", "sim", "traces")
"""The folders of the source on which a point depends."""

GANGS = "1 to 8 GPUs"
RATES: Mapping[str, Sequence[float]] = {
    "1 GPU": (0.4, 2.0, 3.2, 4.0, 4.4, 4.8, 5.2, 5.6, 6.0, 6.4, 7.0),
    GANGS: (0.2, 1.0, 2.0, 2.2, 2.4, 2.6, 2.8, 3.0, 3.4),
}

POLICIES = (
    "fifo:agnostic",
    "fifo",
    "fifo:space-sharing",
    "max-min-fairness:agnostic",
    "gandiva",
    "allox",
    "shortest-job-first",
    "max-min-fairness",
    "max-min-fairness:space-sharing",
    "finish-time-fairness",
    "min-jct",
    "min-jct:space-sharing",
)


class Curve(NamedTuple):
    """Mean completion times in hours by rate: ours, None where it was not sustained to the end, and the authors'."""

    policy: str
    jobs: str
    ours: Mapping[float, float | None]
    authors: Mapping[float, float]


class Points:
    """The points that were measured, in a file of JSON lines; without a file, each is measured anew."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._source = path, digest_of_source()
        self._hours: dict[str, float | None] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                point = json.loads(line)
                if point.pop("source") == self._source:
                    hours = point.pop("hours")
                    self._hours[json.dumps(point, sort_keys=True)] = hours

    def hours(self, point: Mapping[str, object], measure: Callable[[], float | None]) -> float | None:
        """The hours of a point, from the file if they are there."""
        key = json.dumps(point, sort_keys=True)
        if key not in self._hours:
            self._hours[key] = measure()
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps({**point, "hours": self._hours[key], "source": self._source}) + "\n")
        return self._hours[key]


def digest_of_source() -> str:
    """That of all modules on which a point depends."""
    found = hashlib.blake2b(digest_size=8)
    for folder in _DECIDES:
        for path in sorted((_SOURCE / folder).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()


class _OverloadedError(Exception):
    """The jobs that count are not done long after they came."""


def hours_at(policy: str, rate: float, options: TrainingOptions, *, gangs: bool) -> float | None:
    """The mean completion time at a rate; None where the cluster is overloaded."""
    assert options.window is not None
    latest = (options.window[1] / rate + _PATIENCE_HOURS) * 3600

    def watch(_: int, now: float) -> None:
        if now > latest:
            raise _OverloadedError

    try:
        return mean_hours(
            run(f"rate={rate}{',multi-gpu' if gangs else ''},seed={options.seed}", policy, options, progress=watch)
        )
    except _OverloadedError:
        return None


def curves(*, quick: bool, seed: int, points: Points | None = None) -> Iterator[Curve]:
    """A curve for each policy, first without gangs and then with them."""
    points = points or Points(None)
    options = TrainingOptions(window=_QUICK_WINDOW if quick else WINDOW, seed=seed)
    for jobs, rates in RATES.items():
        for policy in POLICIES:
            ours: dict[float, float | None] = {}
            for rate in rates[3:8:4] if quick else rates:
                ours[rate] = points.hours(
                    {"policy": policy, "jobs": jobs, "rate": rate, "seed": seed, "quick": quick},
                    partial(hours_at, policy, rate, options, gangs=jobs == GANGS),
                )
                if not sustained(ours[rate]):
                    break
            yield Curve(policy, jobs, ours, published_hours(policy, jobs))


def sustained(hours: float | None) -> bool:
    """Whether jobs are done in time."""
    return hours is not None and hours < SUSTAINED_HOURS


def rows(found: Curve) -> Iterator[Result]:
    """A row for each rate, and one for the highest that is sustained."""
    jobs = found.jobs
    for rate, hours in found.ours.items():
        if hours is not None:
            peer = found.authors.get(rate)
            yield Result(
                f"{found.policy}, {jobs}, {rate:g}/h", "h", hours,
                peer_name=None if peer is None else "the authors", peer=peer,
                ratio=None if peer is None else peer / hours,
            )  # fmt: skip
    highest, theirs = (
        max((rate for rate, hours in column.items() if sustained(hours)), default=0.0)
        for column in (found.ours, found.authors)
    )
    yield Result(
        f"{found.policy}, {jobs}: highest rate under {SUSTAINED_HOURS:g} h", "jobs/h", highest,
        peer_name="the authors" if found.authors else None, peer=theirs if found.authors else None,
        ratio=highest / theirs if theirs else None,
    )  # fmt: skip


def draw(found: list[Curve], path: Path) -> None:
    """The figure: hours over rates, a line for each policy, dashed for the authors'."""
    page = LoadPage()
    policies = list(dict.fromkeys(curve.policy for curve in found))
    for jobs in RATES:
        page.chart(jobs, "Dashed: the authors.", "jobs per hour", "mean completion time (h)", form=("number", "number"))
        for curve in found:
            if curve.jobs != jobs:
                continue
            for seed, (whose, column) in enumerate((("ours", curve.ours), ("the authors", curve.authors))):
                for rate, hours in column.items():
                    if hours is not None and hours <= 2.5 * SUSTAINED_HOURS:
                        name = f"{curve.policy}, {whose}"
                        told = f"{name}: {hours:.3g} h at {rate:g} per hour"
                        page.point(name, policies.index(curve.policy), (rate, hours), told, seed=seed)
    about = f"A rate is sustained if the mean completion time is under {SUSTAINED_HOURS:g} h."
    run = page.run("rates", of="policy", about=about, finding="Which rates each policy sustains", settings={})
    path.write_text(page_with(document([run]), title="rates"), encoding="utf-8")
