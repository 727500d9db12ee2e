"""Models come and go in the background: what is loaded twice, evicted on the way, fails, or cannot be closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairway.live.serving.runtime.models import Models


@dataclass
class Site:
    """Two models, a background whose work is done when the test says so, and a lane that remembers what it shows."""

    queued: list[tuple[Callable[[], Any], Callable[[Any, BaseException | None], None], float]] = field(
        default_factory=list
    )
    lane: list[tuple[object, ...]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    closed: list[object] = field(default_factory=list)
    answers: list[BaseException | None] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    loads: int = 0
    given_back: int = 0
    clock: float = 10.0

    def __post_init__(self) -> None:
        def load() -> str:
            self.loads += 1
            self.clock += 1.0
            if self.failures:
                raise self.failures.pop(0)
            return f"model of load {self.loads}"

        served = {
            "a": SimpleNamespace(name="a", loader=load, unloader=self.closed.append, load_seconds=2.0),
            "b": SimpleNamespace(name="b", loader=load, unloader=None, load_seconds=None),
        }
        background = SimpleNamespace(
            run=lambda work, done, seconds: self.queued.append((work, done, seconds)),
            sleep=self.slept.append,
            give_back_memory=self._give_back,
        )
        lane = SimpleNamespace(
            begin=lambda *shown: self.lane.append(("begin", *shown)), end=lambda now: self.lane.append(("end", now))
        )
        limits = SimpleNamespace(of_load=lambda seconds: 100.0 if seconds is None else 10 * seconds)
        self.models = Models(
            cast(Any, SimpleNamespace(models=served)), cast(Any, background), cast(Any, lane), cast(Any, limits),
            lambda: self.clock,
        )  # fmt: skip

    def _give_back(self) -> None:
        self.given_back += 1

    def work(self) -> None:
        """Do the next thing in the background."""
        work, done, _ = self.queued.pop(0)
        result, problem = None, None
        try:
            result = work()
        except BaseException as error:
            problem = error
        done(result, problem)

    def load(self, number: int) -> None:
        self.models.load(number, self.answers.append)


@pytest.fixture
def site() -> Site:
    return Site()


def test_a_model_is_here_when_it_is_loaded(site: Site) -> None:
    site.load(0)
    assert (site.models.there, site.queued[0][2]) == ((), 2.0)
    site.work()
    assert (site.models.there, site.answers) == ((0,), [None])
    assert site.models.of("a") == "model of load 1"
    assert site.models.of(None) is None
    assert site.lane == [("begin", 0, -1, 10.0, 30.0, ()), ("end", 11.0)]
    with pytest.raises(KeyError):
        site.models.of("b")


def test_of_a_load_whose_time_is_not_known_the_limit_is(site: Site) -> None:
    site.load(1)
    assert site.queued[0][2] == 0.0
    site.work()
    assert site.lane[0] == ("begin", 1, -1, 10.0, 110.0, ())


def test_a_load_that_fails_is_tried_three_times_with_longer_and_longer_waits(site: Site) -> None:
    site.failures = [OSError("one"), OSError("two")]
    site.load(0)
    site.work()
    assert (site.models.there, site.answers, site.slept) == ((0,), [None], [0.2, 0.4])
    assert len(site.lane) == 6


def test_what_cannot_be_loaded_is_said(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    last = MemoryError("no room")
    site.failures = [OSError("one"), OSError("two"), last]
    site.load(0)
    site.work()
    assert (site.models.there, site.answers, site.loads) == ((), [last], 3)
    reason = site.models.why_not(0, last)
    assert reason == "model 'a' cannot be loaded: MemoryError: no room"
    assert reason in caplog.text


def test_a_model_that_is_evicted_is_closed_and_its_memory_given_back(site: Site) -> None:
    site.load(0)
    site.work()
    site.lane.clear()
    site.models.evict(0)
    assert (site.models.there, site.closed) == ((), []), "at once for the engine, later in fact"
    site.work()
    assert (site.closed, site.given_back) == (["model of load 1"], 1)
    assert [shown[:2] for shown in site.lane if shown[0] == "begin"] == [("begin", 0), ("begin", 0)]
    site.models.evict(0)
    assert site.queued == [], "it is not here any more"


def test_a_model_without_an_unloader_is_let_go(site: Site) -> None:
    site.load(1)
    site.work()
    site.models.evict(1)
    site.work()
    assert (site.given_back, site.closed, site.models.there) == (1, [], ())


def test_what_is_evicted_on_its_way_never_comes(site: Site) -> None:
    site.load(0)
    site.models.evict(0)
    site.work()
    assert (site.models.there, site.answers) == ((), [])
    site.work()
    assert site.closed == ["model of load 1"]


def test_of_a_load_that_is_not_wanted_any_more_a_failure_is_nothing(site: Site) -> None:
    site.failures = [OSError()] * 3
    site.load(0)
    site.models.evict(0)
    site.work()
    assert (site.answers, site.queued) == ([], [])


def test_a_model_that_is_wanted_again_is_the_one_of_the_last_load(site: Site) -> None:
    site.load(0)
    site.models.evict(0)
    site.load(0)
    site.work()
    assert site.models.there == ()
    site.work()
    assert (site.models.of("a"), site.answers) == ("model of load 2", [None])
    site.work()
    assert site.closed == ["model of load 1"]


def test_a_model_that_cannot_be_closed_is_in_the_log(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.load(0)
    site.work()
    site.models.evict(0)
    _, done, seconds = site.queued.pop()
    done(None, RuntimeError("stuck"))
    assert "model 'a' could not be closed: stuck" in caplog.text
    assert seconds == 0.0
    caplog.clear()
    done(None, None)
    assert caplog.text == ""
