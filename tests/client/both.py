"""Both clients behind one face, so that every test is one of each."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from fairway.client import AsyncClient, Client


class Both:
    """Calls a client of either kind and brings what it gives, all of it if it is several."""

    def __init__(self, kind: str, address: str, token: str | None, **options: Any) -> None:
        self._loop = asyncio.new_event_loop() if kind == "async" else None
        self.client: Any = (AsyncClient if self._loop else Client)(address, token, **options)

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            came = getattr(self.client, name)(*arguments, **named)
            if self._loop is None:
                return list(came) if inspect.isgenerator(came) else came

            async def all_of_it() -> Any:
                return [one async for one in came] if inspect.isasyncgen(came) else await came

            return self._loop.run_until_complete(all_of_it())

        return call

    def close(self) -> None:
        if self._loop is None:
            self.client.close()
        else:
            self._loop.run_until_complete(self.client.close())
            self._loop.close()
