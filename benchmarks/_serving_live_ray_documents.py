"""Ray Serve's side of the comparison of documents: the same stages, with `serve.multiplexed` in place of our memory.

Replicas of one deployment run the stages that have models; which replica gets a request is up to Ray, by the model that
the request names. One more deployment is asked by the client, runs the stages without a model itself, and calls the
others: it costs Ray no call, and gives it a process more than we have. A replica runs one stage at a time, as a worker
of ours does, since it stands for one accelerator; a model is loaded meanwhile, in another thread.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ray import serve
from ray.serve.handle import DeploymentHandle

from benchmarks._serving_live_ray import ON_A_CLUSTER, QUIET, begin_ray, end_ray
from fairway.live.serving.application.definition import ServedWorkflow, load_application


class Counted:
    """Counts over all processes: each adds a byte to a file."""

    def __init__(self, file: str) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def add(self) -> None:
        os.write(self._file, b".")


def replica_class(most_models: int) -> type:
    """The class of the replicas; how many models each may hold is part of the class."""

    class Replica:
        def __init__(self, target: str, profile: str, threads: int, directory: str) -> None:
            self._application = load_application(target, profile=Path(profile), threads=threads)
            self._loads = Counted(f"{directory}/loads")
            self._uses = Counted(f"{directory}/uses")
            self._accelerator = ThreadPoolExecutor(1)

        @serve.multiplexed(max_num_models_per_replica=most_models)
        async def model(self, name: str) -> Any:
            self._loads.add()
            return await asyncio.to_thread(self._application.models[name].loader)

        async def run(self, workflow: str, stage: int, payload: dict[str, Any], *outputs: Any) -> Any:
            served = self._application.workflows[workflow]
            self._uses.add()
            model = await self.model(serve.get_multiplexed_model_id())
            work = partial(run_stage, served, stage, model, payload, outputs)
            return await asyncio.get_running_loop().run_in_executor(self._accelerator, work)

    return Replica


class Composition:
    """Walks through the workflow: every stage begins as soon as what it takes is there."""

    def __init__(self, replicas: DeploymentHandle, target: str, profile: str) -> None:
        self._replicas = replicas
        self._application = load_application(target, profile=Path(profile))

    async def __call__(self, workflow: str, payload: dict[str, Any]) -> Any:
        served = self._application.workflows[workflow]
        tasks: list[asyncio.Task[Any]] = []
        for stage in range(len(served.workflow.stages)):
            before = [tasks[each] for each in served.workflow.predecessors[stage]]
            tasks.append(asyncio.create_task(self._stage(served, stage, payload, before)))
        outputs = dict(enumerate(await asyncio.gather(*tasks)))
        return served.reply(outputs)

    async def _stage(
        self, served: ServedWorkflow, stage: int, payload: dict[str, Any], before: list[asyncio.Task[Any]]
    ) -> Any:
        outputs = [await task for task in before]
        given = payload if served.takes_input(stage) else {}
        model = served.model_of(stage)
        if model is None:
            return await asyncio.to_thread(run_stage, served, stage, None, given, outputs)
        chosen = self._replicas.options(multiplexed_model_id=model)
        return await chosen.run.remote(served.name, stage, given, *outputs)


def run_stage(served: ServedWorkflow, stage: int, model: Any, payload: dict[str, Any], outputs: Any) -> Any:
    by_stage = dict(zip(served.workflow.predecessors[stage], outputs, strict=True))
    (result,) = served.run(stage, model, [served.arguments(stage, payload, by_stage)])
    return result


class RayDocuments:
    """The application on so many replicas, each of which holds so many models at most."""

    def __init__(
        self, *, target: str, requests: str, profile: str, workers: int, most_models: int, directory: str
    ) -> None:
        module, _, name = requests.partition(":")
        self._requests = getattr(import_module(module), name)
        self._target, self._profile, self._directory = target, profile, directory
        self._workers, self._most_models = workers, most_models

    async def start(self) -> None:
        begin_ray()
        options: dict[str, Any] = {"ray_actor_options": {"num_cpus": 0}, "logging_config": QUIET}
        # On a cluster a replica takes one of its accelerators, as a worker of ours does.
        accelerated = {**options, "ray_actor_options": {"num_cpus": 0, "num_gpus": int(ON_A_CLUSTER)}}
        replicas = serve.deployment(
            replica_class(self._most_models),
            name="Replica",
            num_replicas=self._workers,
            max_ongoing_requests=100,  # with few, it is slower: those that wait for a model keep others out
            **accelerated,
        )
        composition = serve.deployment(Composition, name="Composition", max_ongoing_requests=1000, **options)
        application = composition.bind(
            replicas.bind(self._target, self._profile, 1, self._directory), self._target, self._profile
        )
        self._handle = await asyncio.to_thread(serve.run, application)

    async def ask(self, number: int) -> None:
        request = self._requests(number)
        request.check(await self._handle.remote(request.workflow, request.inputs))

    async def counts(self) -> dict[str, Any]:
        found = {name: Path(self._directory) / name for name in ("loads", "uses")}
        return {name: file.stat().st_size if file.exists() else 0 for name, file in found.items()}

    async def stop(self) -> None:
        await asyncio.to_thread(end_ray)
