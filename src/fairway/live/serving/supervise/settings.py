"""How an application is served: what, by how many workers, with how much memory each, under which scheduler."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fairway.configure.slices.parts import WHOLE, Slice, check_slices, copies_within, on_slices, shares_of
from fairway.errors import InputError
from fairway.live.backend.logs import LEAST_LOG_BYTES, LOG_BYTES
from fairway.live.serving.application.definition import (
    Application,
    ServedWorkflow,
    accelerator_of,
    load_application,
)
from fairway.live.serving.application.links import LOCAL_LINKS
from fairway.options import nearest
from fairway.place.fleet import Fleet, Worker
from fairway.place.graph import TaskGraph


@dataclass(frozen=True, slots=True)
class ServingSettings:
    """What `fairway serve` was given.

    `target` names the application as `load_application` takes it; `directory` holds the sockets, `memory_directory`,
    which lies in memory, the state table and large values. `memory_bytes` is each worker's budget for models; None is
    no limit; models in `pinned` are loaded at once and stay. A worker takes `most_open` requests at a time at most and
    refuses more. `most_bytes` is the largest body that is taken over HTTP. `threads` is what a stage's library may use.
    `traces` is where OpenTelemetry spans go: an OTLP address over HTTP. `slo_seconds` is for workflows without an SLO.
    A stage that runs longer than `stage_limit_seconds`, or a model that loads longer than `load_limit_seconds`, is
    stuck, and its worker is replaced; None is several times what was expected (`runtime.limits`).
    Of what each worker prints, the last `log_bytes` are kept.
    `devices` are this machine's accelerators, one for each worker, as CUDA calls them; none if they are emulated.
    `backend` names what is under the workers, as `backend_of` takes it; `address` is where it is, if it has to be told.
    With a `wire_certificate` and its key, machines speak TLS with each other.
    What processes share is removed with the parent of a worker, if `parent_owns_memory`.
    `slices` are the parts of a worker that copies of models have, by the name of the model, each in its own process.

    Under a scheduler that plans in one place there is one process more, the planner, numbered after the workers:
    `has_planner` says so, and need not be given.
    """

    target: str
    directory: Path
    memory_directory: Path
    workers: int = 2
    memory_bytes: float | None = None
    scheduler: str = "compass"
    profile: Path | None = None
    most_open: int = 1000
    most_bytes: int = 64 * 2**20
    threads: int = 1
    seed: int = 0
    devices: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    traces: str | None = None
    slo_seconds: float | None = None
    stage_limit_seconds: float | None = None
    load_limit_seconds: float | None = None
    log_bytes: int = LOG_BYTES
    has_planner: bool | None = None
    backend: str = "local"
    address: str | None = None
    wire_certificate: Path | None = None
    wire_key: Path | None = None
    parent_owns_memory: bool = True
    slices: tuple[tuple[str, Slice], ...] = ()

    def __post_init__(self) -> None:
        if self.has_planner is None:
            from fairway.engine.serving.schedule import schedule_of  # noqa: PLC0415 - too much for workers and clients

            object.__setattr__(self, "has_planner", schedule_of(self.scheduler).centralised)
        if self.workers < 1:
            raise InputError(f"workers: {self.workers} given, expected a whole number of at least 1")
        if self.devices and len(self.devices) != self.workers:
            raise InputError(f"devices: {len(self.devices)} given for {self.workers} workers, expected one for each")
        for name in ("stage_limit_seconds", "load_limit_seconds"):
            given = getattr(self, name)
            if given is not None and not (math.isfinite(given) and given > 0):
                raise InputError(
                    f"{name.removesuffix('_seconds').replace('_', '-')}: {given} s given, expected more than 0 s"
                )
        if self.log_bytes < LEAST_LOG_BYTES:
            raise InputError(f"log limit: {self.log_bytes} bytes given, expected at least {LEAST_LOG_BYTES}")
        if self.memory_bytes is not None and not (math.isfinite(self.memory_bytes) and self.memory_bytes > 0):
            raise InputError(f"memory: {self.memory_bytes} given, expected bytes above 0")

    def application(self) -> Application:
        """The application itself, imported here."""
        application = load_application(self.target, profile=self.profile, threads=self.threads)
        for served in application.workflows.values():
            served.slo_seconds = self.slo_seconds if served.slo_seconds is None else served.slo_seconds
            served.workflow = on_slices(served.workflow, dict(self.slices))
        return application

    def shares(self, workflows: Mapping[TaskGraph, ServedWorkflow]) -> dict[TaskGraph, tuple[tuple[int, int], ...]]:
        """What the stages hold of a worker that is divided."""
        if not self.slices:
            return {}
        slices, whole = dict(self.slices), (1, WHOLE)
        return {graph: shares_of(served.workflow, slices, whole) for graph, served in workflows.items()}

    @property
    def emulated(self) -> bool:
        """Whether workers have no accelerator of their own."""
        return not self.devices

    @property
    def planner(self) -> int | None:
        """The number of the planner, if there is one."""
        return self.workers if self.has_planner else None

    @property
    def doors(self) -> range:
        """The numbers of the processes that take requests: all workers, or the planner."""
        return range(self.workers) if self.planner is None else range(self.planner, self.planner + 1)

    @property
    def processes(self) -> range:
        """The numbers of all processes: the workers, and the planner if there is one."""
        return range(self.workers if self.planner is None else self.planner + 1)

    def fleet(self, application: Application) -> Fleet:
        """The workers and the models that they may hold, with the time that each model really takes to load."""
        models = [model.model for model in application.models.values()]
        everything = copies_within(dict(self.slices), {model.name: model.bytes for model in models})
        memory = everything if self.memory_bytes is None else self.memory_bytes
        kind, parts = accelerator_of(self.threads), WHOLE if self.slices else 1
        workers = [Worker(f"worker-{number}", memory, kind, "here", slices=parts) for number in range(self.workers)]
        fleet = Fleet.of(workers, models, LOCAL_LINKS)
        seconds = fleet.fetch_seconds.copy()
        for number, served in enumerate(application.models.values()):
            if served.load_seconds is not None:
                seconds[number] = served.load_seconds
        return replace(fleet, fetch_seconds=seconds)

    def graphs(self, application: Application, fleet: Fleet) -> list[TaskGraph]:
        """The workflows on these workers, in the application's order; refuses a model that fits nowhere."""
        self._check_pins(application)
        sizes = {name: model.bytes for name, model in application.models.items()}
        check_slices(dict(self.slices), sizes, self.memory_bytes)
        return [TaskGraph.of(served.workflow, fleet) for served in application.workflows.values()]

    def _check_pins(self, application: Application) -> None:
        sizes = {name: model.bytes for name, model in application.models.items()}
        for name in self.pinned:
            if name not in sizes:
                raise InputError(
                    f"pinned: no model '{name}'{nearest(name, sizes)}; models: {', '.join(sizes) or 'none'}"
                )
        pinned = sum(sizes[name] for name in set(self.pinned))
        largest = max((size for name, size in sizes.items() if name not in self.pinned), default=0)
        if self.pinned and self.memory_bytes is not None and pinned + largest > self.memory_bytes:
            raise InputError(
                f"pinned: {', '.join(self.pinned)} need {pinned / 1e6:g} MB, which leaves too little of "
                f"{self.memory_bytes / 1e6:g} MB for the largest other model ({largest / 1e6:g} MB); pin fewer"
            )

    def name_of(self, number: int) -> str:
        """What a process is called, in the names of its socket and its log."""
        return "planner" if number == self.planner else f"worker-{number}"

    def socket(self, number: int) -> Path:
        """Where a process listens."""
        return self.directory / f"{self.name_of(number)}.sock"

    def log(self, number: int) -> Path:
        """Where a process writes what it has to say."""
        return self.directory / f"{self.name_of(number)}.log"

    @property
    def table(self) -> Path:
        """The file of the state table."""
        return self.memory_directory / "table"

    def save(self, path: Path) -> None:
        """Write it down for the workers."""
        content = {key: str(value) if isinstance(value, Path) else value for key, value in asdict(self).items()}
        path.write_text(json.dumps(content))

    @classmethod
    def read(cls, path: Path) -> ServingSettings:
        """What was written down."""
        content = json.loads(path.read_text())
        for name in ("directory", "memory_directory", "profile", "wire_certificate", "wire_key"):
            content[name] = None if content[name] is None else Path(content[name])
        for name in ("pinned", "devices"):
            content[name] = tuple(content[name])
        content["slices"] = tuple((name, Slice(**own)) for name, own in content["slices"])
        return cls(**content)
