"""Plans in events, what makes a job familiar, rows of usage and limits of connections; without a server."""

from __future__ import annotations

import asyncio
import resource
import threading
from collections.abc import Callable
from typing import Any

import pytest

from fairway.errors import FairwayError, InputError
from fairway.jobs.description import parse_job
from fairway.service import planning as module
from fairway.service.admission import Admitted, _look_of
from fairway.service.http.connections import ConnectionLimits
from fairway.service.http.problems import ProblemError
from fairway.service.planning import Planning
from fairway.service.routes.usage import UsageQuery, _rows
from fairway.sim.comparison import Watcher
from fairway.store.usage import Used

# Plans


@pytest.fixture(autouse=True)
def _news_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_NEWS", 0.005)
    monkeypatch.setattr(module, "_in_pool", lambda work, progress: work(None, progress))


def events(work: Callable[[Any, Watcher], dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    async def all_of_them() -> list[tuple[str, dict[str, Any]]]:
        return [event async for event in Planning().made(work)]

    return asyncio.run(all_of_them())


def test_progress_is_told_when_there_is_some_and_then_the_plan() -> None:
    def work(_: object, watcher: Watcher) -> dict[str, Any]:
        pause = threading.Event()
        pause.wait(0.05)
        for run in range(2):
            watcher.ended(run, None)  # type: ignore[arg-type]
            pause.wait(0.05)
        return {"answer": 42}

    told = events(work)
    assert told[-1] == ("plan", {"answer": 42})
    progress = [content["done"] for kind, content in told[:-1] if kind == "progress"]
    assert progress == sorted(set(progress)), "nothing is told twice"
    assert {0, 2} <= set(progress)
    assert len(progress) == len(told) - 1


@pytest.mark.parametrize(("error", "code"), [(InputError("no"), "bad-input"), (FairwayError("no"), "failed")])
def test_a_plan_that_cannot_be_made_fails_with_a_code(error: FairwayError, code: str) -> None:
    def work(*_: object) -> dict[str, Any]:
        raise error

    assert events(work)[-1] == ("failed", {"code": code, "detail": "no"})


def test_one_plan_is_made_at_a_time() -> None:
    let_go = threading.Event()

    def work(*_: object) -> dict[str, Any]:
        let_go.wait(10.0)
        return {}

    async def both() -> None:
        planning = Planning()
        first = planning.made(work)
        assert await anext(first) == ("progress", {"done": 0})
        with pytest.raises(ProblemError) as caught:
            await anext(planning.made(work))
        assert caught.value.status == 429
        let_go.set()
        assert [kind async for kind, _ in first] == ["plan"]
        assert [kind async for kind, _ in planning.made(work)][-1] == "plan", "the next one may begin"

    asyncio.run(both())


def test_a_plan_whose_client_has_gone_is_given_up() -> None:
    ended: list[str] = []
    over = threading.Event()

    def work(_: object, watcher: Watcher) -> dict[str, Any]:
        try:
            while True:
                watcher.advanced(0, 0, 0.0)
                threading.Event().wait(0.002)
        except FairwayError as error:
            ended.append(str(error))
            raise
        finally:
            over.set()

    async def leave() -> None:
        plan = Planning().made(work)
        await anext(plan)
        await plan.aclose()
        await asyncio.to_thread(over.wait, 10.0)

    asyncio.run(leave())
    assert ended == ["the client has gone"]


# Jobs at the door


def look(text: str, team: str | None = "red") -> object:
    return _look_of(Admitted(parse_job(f"run: x\n{text}", "job.yaml"), team))


def test_jobs_that_ask_for_the_same_look_the_same() -> None:
    plain = look("throughputs: {v100: 2.0, k80: 0}\nsteps: 5")
    assert plain == look("throughputs: {v100: 7.0}\nsteps: 9\nweight: 3"), "a rate of 0 is none"
    others = [
        look("throughputs: {v100: 2.0, k80: 1}\nsteps: 5"),
        look("throughputs: {v100: 2.0}"),
        look("throughputs: {v100: 2.0}\nsteps: 5\npreemptible: false"),
        look("throughputs: {v100: 2.0}\nsteps: 5\nresources: {accelerators: 'v100:2'}"),
        look("throughputs: {v100: 2.0}\nsteps: 5", "blue"),
        look("steps: 5"),
    ]
    assert plain not in others
    assert len(set(map(str, others))) == len(others)


# Usage


def used(team: str | None, by: str, **seconds: float) -> Used:
    return Used(team, by, 2, seconds)


def test_usage_is_added_up_by_what_is_asked_for() -> None:
    found = [
        used("red", "ann (web)", v100=3600.0), used("red", "bob", v100=1800.0, k80=60.0), used(None, "ann", k80=40.0),
    ]  # fmt: skip
    prices = {"v100": 2.0, "k80": 3.6}

    def told(*by: str) -> list[tuple[object, ...]]:
        rows = _rows(found, by, prices)
        return [(row.team, row.user, row.jobs, row.accelerator_seconds, row.cost_dollars) for row in rows]

    assert told("team") == [
        ("red", None, 4, {"v100": 5400.0, "k80": 60.0}, pytest.approx(3.06)),
        (None, None, 2, {"k80": 40.0}, pytest.approx(0.04)),
    ]
    assert told("user") == [
        (None, "ann", 4, {"v100": 3600.0, "k80": 40.0}, pytest.approx(2.04)),
        (None, "bob", 2, {"v100": 1800.0, "k80": 60.0}, pytest.approx(1.06)),
    ]
    assert [row[:3] for row in told("team", "user")] == [("red", "ann", 2), ("red", "bob", 2), (None, "ann", 2)]


def test_what_has_no_price_has_no_cost() -> None:
    rows = _rows([used("red", "ann", v100=3600.0), used("blue", "ann", k80=1.0)], ["team"], {"v100": 2.0})
    assert [row.cost_dollars for row in rows] == [pytest.approx(2.0), None]


def test_usage_begins_a_week_ago() -> None:
    from fairway.service.routes import usage  # noqa: PLC0415

    assert usage._WEEK == 7 * 24 * 60 * 60
    assert UsageQuery().by == ["team"]


# Connections


@pytest.mark.parametrize(
    ("files", "most", "per_client"),
    [(1_000_000, 10_000, 4_000), (1024, 768, 576), (4256, 4000, 3000), (256, 32, 24), (10, 32, 24)],
)
def test_as_many_connections_are_taken_as_there_are_descriptors_for(
    monkeypatch: pytest.MonkeyPatch, files: int, most: int, per_client: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    limits = ConnectionLimits.of_this_process()
    assert (limits.most, limits.most_per_client) == (most, per_client)
