"""What open pages are told beside jobs: only what is new, and the workers only where they changed."""

from __future__ import annotations

import json
from typing import Any

from fairway.service.page_news import LOOK_BACK_SECONDS, PageNews


class Machine:
    now = 1000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


class System:
    """A system whose status and history a test sets."""

    def __init__(self) -> None:
        self.machine, self.status, self.workers = Machine(), "{}", [1, 2]
        self.asked: list[tuple[str | None, float | None]] = []
        self.news = PageNews(lambda: self.status, self._history, self.machine)

    def _history(self, team: str | None, since: float | None) -> dict[str, Any]:
        self.asked.append((team, since))
        return {"types": ["v100"], "begins_at": 0.0, "workers": {"number": list(self.workers)}, "jobs": {"team": team}}

    def told(self, *teams: str | None, changed: bool) -> dict[str | None, list[str]]:
        return {team: [kind for kind, _ in some] for team, some in self.news.next(teams, changed=changed).items()}


def test_where_nothing_changed_nothing_is_asked_and_nothing_told() -> None:
    system = System()
    assert system.told(None, changed=False) == {None: ["status", "history"]}
    asked = len(system.asked)
    assert system.told(None, changed=False) == {}
    assert len(system.asked) == asked


def test_each_team_is_told_its_own_once_however_many_pages_it_has_open() -> None:
    system = System()
    system.told(None, "red", changed=True)
    assert [team for team, _ in system.asked] == [None, "red"]
    told = system.news.next([None, "red"], changed=True)
    assert [json.loads(text)["runs"][0]["jobs"]["team"] for _, text in (told[None][-1], told["red"][-1])] == [
        None,
        "red",
    ]


def test_workers_are_told_only_when_they_are_different() -> None:
    system = System()

    def has_workers() -> bool:
        (_, text) = system.news.next([None], changed=True)[None][-1]
        return "workers" in json.loads(text)["runs"][0]

    assert [has_workers(), has_workers()] == [True, False]
    system.workers.append(3)
    assert [has_workers(), has_workers()] == [True, False]


def test_what_changed_is_asked_for_from_before_the_last_time_on() -> None:
    system = System()
    system.told(None, changed=True)
    system.machine.now = 1005.0
    system.told(None, changed=True)
    system.machine.now = 1010.0
    system.told(None, changed=True)
    assert [since for _, since in system.asked] == [at - LOOK_BACK_SECONDS for at in (1000.0, 1000.0, 1005.0)]


def test_the_first_page_after_hours_is_not_told_of_all_that_happened_meanwhile() -> None:
    system = System()
    system.told(None, changed=True)
    system.machine.now = 9000.0
    system.news.begin()
    system.told(None, changed=True)
    assert system.asked[-1] == (None, 9000.0 - LOOK_BACK_SECONDS)
