"""What open pages are told beside jobs: how the system stands, and what of its history changed.

Both are made once for all pages whose tokens see the same, every few seconds and only if there is something to tell, so
that many open pages cost little more than one. What changed is a saved run as `GET /history` answers it, without the
workers where these are as they were.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from fairway.dashboard.run_file import document
from fairway.wall_clock import MachineClock

NEWS_SECONDS = 5.0
LOOK_BACK_SECONDS = 10.0
"""Changes become durable in another order than that of the times that they carry."""

History = Callable[[str | None, float | None], dict[str, Any]]
"""The run as a team may see it, or what of it changed since a moment."""


def run_text(run: Mapping[str, Any]) -> str:
    """A run as the text of a saved run."""
    return json.dumps(document([run]), allow_nan=False, separators=(",", ":"))


class PageNews:
    """Remembers what pages were told last. `status` is how the system stands, as JSON."""

    def __init__(self, status: Callable[[], str], history: History, machine: MachineClock) -> None:
        self._status, self._history, self._machine = status, history, machine
        self._said: str | None = None
        self._workers: dict[str | None, Any] = {}
        self._since = machine.time()

    def begin(self) -> None:
        """The first page after a while is there: it knows what was before."""
        self._since = self._machine.time()

    def next(self, teams: Collection[str | None], *, changed: bool) -> dict[str | None, list[tuple[str, str]]]:
        """By team, kinds and texts of events; `changed` says whether any job did since the last time."""
        now, told = self._machine.time(), self._status()
        news: list[tuple[str, str]] = []
        if told != self._said:
            self._said, changed = told, True
            news.append(("status", told))
        if not changed:
            return {}
        since, self._since = self._since - LOOK_BACK_SECONDS, now
        found: dict[str | None, list[tuple[str, str]]] = {}
        for team in teams:
            run = self._history(team, since)
            workers = json.dumps([run["types"], run["begins_at"], run["workers"]])
            if self._workers.get(team) == workers:
                del run["workers"]
            self._workers[team] = workers
            found[team] = [*news, ("history", run_text(run))]
        for team in set(self._workers) - set(teams):
            del self._workers[team]
        return found
