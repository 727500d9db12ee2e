"""Fairway's side of a comparison: serves an application, and asks it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from fairway.live.serving.clients.async_client import AsyncServingClient
from fairway.live.serving.clients.client import ServingClient
from fairway.live.serving.supervise.supervisor import Supervisor, tallies


class Ours:
    """An application on so many workers. `requests` names a function: from a number, the workflow, its inputs, and a
    check of the answer."""

    def __init__(self, target: str, requests: str, profile: str | None = None, **settings: Any) -> None:
        module, _, name = requests.partition(":")
        self._requests = getattr(import_module(module), name)
        where = None if profile is None else Path(profile)
        self._supervisor = Supervisor.of(target, profile=where, **settings)

    async def start(self) -> None:
        self._supervisor.start()
        directory = self._supervisor.settings.directory
        self._client, self._waiting_client = AsyncServingClient(directory), ServingClient(directory)

    async def ask(self, number: int) -> None:
        request = self._requests(number)
        request.check(await self._client.ask(request.workflow, **request.inputs))

    def ask_and_wait(self, number: int) -> None:
        """The same without asyncio."""
        request = self._requests(number)
        request.check(self._waiting_client.ask(request.workflow, **request.inputs))

    async def counts(self) -> dict[str, Any]:
        """Of all workers together."""
        found = tallies(self._supervisor.settings).values()
        summed: dict[str, Any] = {
            name: sum(each[name] for each in found)
            for name in ("asked", "replied", "failures", "hits", "misses", "loads", "evictions")
        }
        summed["planning"] = [
            sum(counts) for counts in zip(*(each["planning"]["counts"] for each in found), strict=True)
        ]
        summed["latency_seconds"] = sum(of["total"] for each in found for of in each["latency"].values())
        summed["planning_seconds"] = sum(each["planning"]["total"] for each in found)
        return summed

    async def stop(self) -> None:
        await self._client.close()
        self._waiting_client.close()
        self._supervisor.stop()
