"""Ray Serve's side of the comparison of trivial stages: three deployments, composed through their handles.

As its guides advise: replicas take many requests at a time, nothing is logged for each, handlers are async. The first
deployment is the one that is asked, and calls the others. `RAY_SERVE_THROUGHPUT_OPTIMIZED=1` in the environment lets
deployments talk over gRPC, with the router and the handlers in one loop, and HTTP go to replicas directly.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

import ray
from ray import serve
from ray.serve.handle import DeploymentHandle
from ray.serve.schema import LoggingConfig
from starlette.requests import Request

from benchmarks._serving_live_http import HttpClient

ON_A_CLUSTER = "RAY_ADDRESS" in os.environ
QUIET = LoggingConfig(enable_access_log=False, log_level="WARNING")
OPTIONS: dict[str, Any] = {
    "num_replicas": 1,
    "max_ongoing_requests": 1000,
    # On a cluster each takes one of its accelerators, as our workers do.
    "ray_actor_options": {"num_cpus": 0, "num_gpus": int(ON_A_CLUSTER)},
    "logging_config": QUIET,
}


@serve.deployment(**OPTIONS)
class Second:
    async def __call__(self, number: int) -> int:
        return number + 1


@serve.deployment(**OPTIONS)
class Third:
    async def __call__(self, number: int) -> int:
        return number + 1


@serve.deployment(**OPTIONS)
class First:
    def __init__(self, second: DeploymentHandle, third: DeploymentHandle) -> None:
        self.second, self.third = second, third

    async def __call__(self, number: int) -> int:
        # Passing the response on without awaiting it is no faster with either transport, and slower with gRPC.
        answer: int = await self.third.remote(await self.second.remote(number + 1))
        return answer


@serve.deployment(**OPTIONS)
class FirstOverHttp(First.func_or_class):  # type: ignore[misc]
    async def __call__(self, request: Request) -> Any:
        return await super().__call__((await request.json())["number"])


class RayTrivial:
    """The three of them, asked through a handle."""

    async def start(self) -> None:
        begin_ray()
        self._handle = await asyncio.to_thread(serve.run, First.bind(Second.bind(), Third.bind()))

    async def ask(self, number: int) -> None:
        answer = await self._handle.remote(number)
        assert answer == number + 3, f"{answer} came for {number}"

    async def counts(self) -> dict[str, Any]:
        return {}

    async def stop(self) -> None:
        await asyncio.to_thread(end_ray)


class RayOverHttp(RayTrivial):
    """The three of them, asked over HTTP."""

    async def start(self) -> None:
        begin_ray()
        await asyncio.to_thread(serve.run, FirstOverHttp.bind(Second.bind(), Third.bind()))
        self._client = HttpClient(8000, "/")
        await self._client.wait({"number": 0})

    async def ask(self, number: int) -> None:
        answer = await self._client.post({"number": number})
        assert answer == number + 3, f"{answer} came for {number}"

    async def stop(self) -> None:
        self._client.close()
        await super().stop()


def begin_ray() -> None:
    """Ray on this machine alone, with as little beside it as it can do with; or the cluster of the environment."""
    if ON_A_CLUSTER:
        ray.init(log_to_driver=False, logging_level=logging.ERROR)
        return
    ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, num_cpus=4)


def end_ray() -> None:
    serve.shutdown()
    ray.shutdown()
