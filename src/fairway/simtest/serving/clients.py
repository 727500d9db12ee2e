"""Clients in virtual time: each a process of its own, with the asyncio client, which asks when a plan says so."""

from __future__ import annotations

import asyncio
from random import Random

from fairway.live.serving.clients.async_client import AsyncServingClient
from fairway.live.serving.clients.client_protocol import NoWorkerAnswersError, RequestFailedError, Site
from fairway.live.serving.seams.values import client_owner
from fairway.live.serving.simulated.event_loop import VirtualLoop
from fairway.live.serving.simulated.system import SimulatedSystem
from fairway.simtest.serving.application import answer_to, inputs_of
from fairway.simtest.serving.promises import Asked, Record


class SimulatedClient:
    """One client; `problems` are what it did not expect."""

    def __init__(
        self, system: SimulatedSystem, workflows: tuple[str, ...], number: int, record: Record, draws: Random
    ) -> None:
        self._system, self._record = system, record
        self._number = number
        self._seams = system.clients_seams(f"client-{number}")
        self._owner = client_owner(1, f"{number:08x}")
        site = Site(system.settings, workflows, self._seams, self._seams.values(self._owner), draws)
        self._loop = VirtualLoop(system.time, system.machine.network)
        self._client = AsyncServingClient(site)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.problems: list[str] = []
        self.is_dead = False

    def ask(self, number: int, workflow: str, harm: str, deadline: float | None) -> None:
        """Ask for something."""
        asked = Asked(number, workflow, self._system.time.now(), answer_to(workflow, number), deadline, harm)
        self._record.requests[number] = asked
        if self.is_dead:
            asked.left = True
            return
        self._tasks[number] = self._loop.create_task(self._conversation(asked))

    def leave(self, number: int) -> bool:
        """Wait no more for the outcome of a request, as a coroutine that is cancelled; False if it is there."""
        task = self._tasks.get(number)
        if self.is_dead or task is None or task.done():
            return False
        self._record.requests[number].left = True
        task.cancel()
        return True

    def die(self) -> bool:
        """The process of the client dies without a word; False if it is dead."""
        if self.is_dead:
            return False
        self.is_dead = True
        for number in self._tasks:
            asked = self._record.requests[number]
            asked.left = asked.left or asked.ended_at is None
        self._loop.end()
        self._system.client_died(self._seams, self._owner)
        return True

    def close(self) -> None:
        """The history is over and judged: let what still waits end in order, also in a client that has died."""
        self.problems.extend(self._loop.problems)
        self._loop.begin_again()
        self._seams.life.is_over = False
        for task in self._tasks.values():
            task.cancel()

    async def _conversation(self, asked: Asked) -> None:
        client, inputs = self._client, inputs_of(asked.workflow, asked.number, asked.harm)
        code, reason, answer = None, "", None
        try:
            if asked.workflow == "counted":
                stream = client.stream(asked.workflow, deadline_seconds=asked.deadline, **inputs)
                answer = [piece async for piece in stream]
            else:
                answer = await client.ask(asked.workflow, deadline_seconds=asked.deadline, **inputs)
        except RequestFailedError as error:
            code, reason = error.code, str(error)
        except NoWorkerAnswersError as error:
            code, reason = "no-worker", str(error)
        except Exception as error:
            self.problems.append(f"the client of {asked} raised {type(error).__name__}: {error}")
            code, reason = "raised", str(error)
        asked.ended_at = self._system.time.now()
        asked.answer, asked.code, asked.reason = answer, code, reason
