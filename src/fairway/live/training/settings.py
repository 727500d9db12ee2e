"""How a controller is to schedule, and where it keeps its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fairway.allocate.packing.packer import Rule
from fairway.allocate.registry import policy_of
from fairway.errors import InputError
from fairway.jobs import Entity
from fairway.jobs.description import JobDescription
from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.logs import LEAST_LOG_BYTES, LOG_BYTES
from fairway.live.backend.registry import backend_named
from fairway.live.backend.status import MachineSize
from fairway.live.training.admission.priorities import Priorities, PriorityClass
from fairway.magnitudes import FACTORS, SPANS


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """What `fairway up` was given.

    `round_seconds` and `restart_seconds` are on the engine's clock, which `time_scale` makes faster than the wall's
    where accelerators are emulated. `emulate` declares accelerators as in `v100=2,k80=1`; without it they are found.
    `backend` is the name of what runs the jobs, and `run_as` has the users of the machine as which it does: by team,
    and that of all other jobs under the name "".
    `decision_seconds` (of the wall clock) is how long the policy may take for a decision before it is given up.
    Jobs may have addresses at the `notify_hosts` told of their ends. `entities` are teams with their weights, `quotas`
    what they may have at a time, by type (`quotas.TOTAL` for all), `priority_classes` those that jobs can
    name. `journal_entries` is how many entries of the journal
    are kept at least, `log_bytes` how much of what each process of a job prints. `cpus` and `memory_bytes` are what
    jobs have on each machine, instead of what is found there. `device_memory` has, by type, the bytes of accelerators
    that do not say how much memory they have. `packing` is the rule by which parts of accelerators are given.
    """

    directory: Path
    policy: str = "max-min-fairness"
    round_seconds: float = 60.0
    restart_seconds: float = 5.0
    time_scale: float = 1.0
    emulate: str | None = None
    backend: str = "local"
    run_as: Mapping[str, str] = field(default_factory=dict)
    entities: Mapping[str, Entity] = field(default_factory=dict)
    quotas: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    priority_classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    decision_seconds: float = 30.0
    notify_hosts: tuple[str, ...] = ()
    journal_entries: int = 100_000
    log_bytes: int = LOG_BYTES
    cpus: float | None = None
    memory_bytes: int | None = None
    device_memory: Mapping[str, int] = field(default_factory=dict)
    packing: Rule = "fgd"

    def __post_init__(self) -> None:
        policy_of(self.policy)
        backend_named(self.backend)
        for what, number, sizes in (
            ("time scale", self.time_scale, FACTORS),
            ("round", self.round_seconds, SPANS),
            ("decision", self.decision_seconds, SPANS),
            *((f"prices.{name}", price, FACTORS) for name, price in self.prices.items()),
            *((f"teams.{name}.weight", team.weight, FACTORS) for name, team in self.entities.items()),
        ):
            try:
                sizes.above_zero(number)
            except InputError as error:
                raise InputError(f"{what}: {error}") from None
        if self.log_bytes < LEAST_LOG_BYTES:
            raise InputError(f"log limit: {self.log_bytes} bytes given, expected at least {LEAST_LOG_BYTES}")
        if self.time_scale != 1 and self.emulate is None and self.backend == "local":  # others find out by themselves
            raise InputError(f"time scale: {self.time_scale} given, but only emulated accelerators can run faster")

    def user_of(self, team: str | None) -> str | None:
        """As which user jobs of a team run; None for that of the controller."""
        return self.run_as.get(team or "", self.run_as.get(""))

    def priority_of(self, spec: JobDescription, team: str | None) -> PriorityClass:
        """The priority class of a job; refuses one that there is not, or that its team may not use."""
        return Priorities(self.priority_classes, self.entities).of(spec, team)

    def declared(self, machines: Sequence[MachineSize]) -> list[MachineSize]:
        """The machines of a backend with what was declared of them instead of what was found."""
        return [
            replace(
                one,
                cpus=one.cpus if self.cpus is None else self.cpus,
                memory_bytes=one.memory_bytes if self.memory_bytes is None else self.memory_bytes,
            )
            for one in machines
        ]

    def completed(self, accelerators: Sequence[Accelerator]) -> tuple[Accelerator, ...]:
        """The accelerators of a backend with what was declared of them where they do not say it themselves."""
        return tuple(
            replace(one, memory_bytes=self.device_memory[one.type])
            if one.memory_bytes is None and one.type in self.device_memory
            else one
            for one in accelerators
        )

    @property
    def backend_directory(self) -> Path:
        """Where the backend keeps its state, logs and checkpoints, as far as they are on this machine."""
        return self.directory / "agent"
