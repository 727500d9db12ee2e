"""From the description of a job to the job that policies and the engine see: the one place that turns it into another.

How fast the job runs is given by its `throughputs`, or by the table of profiles for its `job_type`; of a job with
neither all accelerator types count as alike until it was measured (`beliefs`). A job with a part of an accelerator has
its own `throughputs` on that part; where only the table knows it, it is taken to run at that part of the speed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from fairway.cluster import Cluster, resources_in_words
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.jobs.description import JobDescription
from fairway.live.training.admission.priorities import USUAL, PriorityClass
from fairway.live.training.clock import Clock
from fairway.profiles.tables import ThroughputTable

_UNKNOWN_RATE = 1.0
"""Steps per second on every type of a job of which no rate is known."""


def engine_job(
    job_id: str,
    description: JobDescription,
    throughputs: Mapping[str, float],
    *,
    team: str | None,
    steps_left: float | None,
    slo_seconds: float | None = None,
    measured: Collection[str] = (),
    resumes: bool | None = None,
    priority: PriorityClass = USUAL,
) -> Job:
    """The job as policies and the engine see it.

    `throughputs` are its steps per second by accelerator type, as described (`described_rates`) or as believed since.
    Of a job that does not describe them they are guesses, except on the types where they were `measured`. `resumes`
    says whether the job was seen to keep checkpoints; None, that nothing was seen of it yet.
    """
    guessed = tuple(name for name in throughputs if name not in measured) if is_unknown(description) else ()
    return Job(
        id=job_id,
        throughputs=throughputs,
        scale_factor=description.workers,
        weight=description.weight,
        steps_left=steps_left,
        slo_seconds=slo_seconds,
        entity=team,
        job_type=description.job_type,
        preemptible=description.preemptible,
        guessed=guessed,
        resumes=says_it_resumes(description) if resumes is None else resumes,
        cpus=description.resources.cpus or 0.0,
        memory_bytes=description.resources.memory or 0.0,
        priority=priority.value,
        preempts=priority.preempts,
        part=description.accelerators.part,
        nodes=description.num_nodes,
    )


def is_unknown(description: JobDescription) -> bool:
    """Whether a description says nothing of how fast the job runs."""
    return description.throughputs is None and description.job_type is None


def says_it_resumes(description: JobDescription) -> bool:
    """Whether a description says that the job keeps checkpoints; otherwise its first report through a lease does."""
    return "checkpoint" in description.model_fields_set


def described_rates(
    description: JobDescription, cluster: Cluster, table: ThroughputTable | None = None
) -> dict[str, float]:
    """Steps per second on each type of the cluster that will do; refuses a job that can never run there."""
    request = description.accelerators
    if request.memory_bytes is not None:
        raise InputError("resources.accelerators: memory given, which is for submitted jobs; give a part, as in 0.5")
    try:
        types = request.among(cluster.types)
    except InputError as error:
        raise InputError(f"resources.accelerators: {error}") from None
    count = description.workers
    _refuse_too_large(description, cluster, types)
    types = _types_with_room(description, cluster, types)
    given = description.throughputs
    if given is not None:
        by_type = {name.lower(): rate for name, rate in given.items()}
        rates = {name: by_type.get(name.lower(), 0.0) for name in types}
    elif description.job_type is not None and table is not None:
        try:
            known = table.rates(description.job_type, count)
        except InputError as error:
            raise InputError(f"job_type: {error}") from None
        rates = {name: known.get(name, 0.0) * request.part for name in types}
    else:
        rates = dict.fromkeys(types, _UNKNOWN_RATE)
    if not any(rates.values()):
        source = "job_type" if given is None else "throughputs"
        raise InputError(f"{source}: no rate above 0 on {' or '.join(types)}; give one for a type that will do")
    return rates


def _refuse_too_large(description: JobDescription, cluster: Cluster, types: Sequence[str]) -> None:
    """Refuse a gang that no type has enough workers for, on so many nodes as it may span."""
    count, nodes = description.workers, description.num_nodes
    if any(count <= cluster.workers[name] and cluster.holds_within(name, count, nodes) for name in types):
        return
    most = max((cluster.workers[name] for name in types), default=0)
    where, what_to_do = "this cluster", ""
    if count <= most:
        most = max(cluster.largest_node(name) for name in types)
        where = "a node of this cluster"
        what_to_do = f"; let it span more nodes, as by 'num_nodes: {-(-count // most)}'" if nodes == 1 else ""
        if nodes > 1:
            raise InputError(
                f"num_nodes: {nodes} nodes with {count // nodes} workers of one type each asked for, but {where} has "
                f"at most {most}"
            )
    raise InputError(
        f"resources.accelerators: {count} workers of one type asked for, but {where} has at most {most}{what_to_do}"
    )


def _types_with_room(description: JobDescription, cluster: Cluster, types: Sequence[str]) -> tuple[str, ...]:
    """The types whose machines have the CPUs and the memory that a job asks for; refuses one that none has."""
    asked, count = description.resources, description.workers
    roomy = tuple(name for name in types if cluster.has_room(name, count, asked.cpus or 0.0, asked.memory or 0.0))
    if not roomy:
        names = [name for name in ("cpus", "memory") if getattr(asked, name) is not None]
        words = resources_in_words(asked.cpus or 0.0, asked.memory or 0.0)
        raise InputError(
            f"resources.{names[0]}: {words} asked for, but the largest machine with {' or '.join(types)} has "
            f"{cluster.largest_machine(types)}"
        )
    return roomy


def deadline_on(clock: Clock, description: JobDescription, submitted_at: float) -> float | None:
    """When the job should have ended, on the engine's clock; a span after submission is one of the engine's seconds."""
    deadline = description.deadline
    if isinstance(deadline, datetime):
        return clock.at(deadline.timestamp())
    return None if deadline is None else clock.past(submitted_at) + deadline
