"""Why each job waits, as a code that stays the same over versions and a sentence for people; for all jobs at once.

The first that applies is the reason:

- `Unrunnable`, `WorkersLost`, `WorkersDrained`: no type that the job runs on has as many workers as it asks for, and
  would not even with the lost ones back, or only with them, or with the drained ones;
- `Held`: on each of its types, jobs that must not be preempted hold so many that the rest is too few;
- `WaitingForRound`: it starts as the next round begins, or nothing was decided about it yet;
- `NotEnoughResources`: workers that it could use are idle, but their machines have too few CPUs or too little memory
  beside what other jobs ask for;
- `Reserved`: what it could use is idle or held, but too few of it are not reserved for other teams;
- `NotEnoughWorkers`: workers that it could use are idle, but on no type as many as it asks for at once;
- `WaitingForShare`: other jobs hold all workers that it could use, and keep them or are owed more.

The sentences here hold for as long as the reason does; numbers that change from round to round are left to
`explanation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from fairway.allocate.arrays import BoolArray, IntArray
from fairway.allocate.packing.requests import WHOLE
from fairway.cluster import resources_in_words
from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.fitting import Fitting
from fairway.engine.training.job_table import JobTable
from fairway.engine.training.reservations import Kept
from fairway.engine.training.what_if import choose_next_round, snapshot

Code: TypeAlias = Literal[
    "Running",
    "Starting",
    "WaitingForRound",
    "WaitingForShare",
    "NotEnoughWorkers",
    "NotEnoughResources",
    "Reserved",
    "Held",
    "WorkersDrained",
    "WorkersLost",
    "Unrunnable",
]

NONE_DRAINED: Mapping[str, int] = MappingProxyType({})

_MOST_NAMES = 3


class Reason(NamedTuple):
    """A code and a sentence."""

    code: Code
    sentence: str


@dataclass(frozen=True, slots=True)
class Room:
    """The workers of each type: those there, idle, drained and lost, and the jobs that must not be preempted on them.

    `spare` are those that are there and not held by such jobs, in thousandths.
    """

    types: tuple[str, ...]
    present: IntArray
    free: IntArray
    drained: IntArray
    lost: IntArray
    spare: IntArray
    holders: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, engine: TrainingEngine, drained: Mapping[str, int] = NONE_DRAINED) -> Room:
        """As the engine has it; so many of the workers that have left were drained, the others are lost."""
        workers, jobs, types = engine.workers, engine.jobs, engine.types
        absent = np.array([workers.count(column) for column in range(len(types))], dtype=np.int64) - workers.present
        on_purpose = np.minimum(np.array([drained.get(name, 0) for name in types], dtype=np.int64), absent)
        spare, holders = WHOLE * workers.present, dict[str, list[str]]()
        for position in np.flatnonzero((jobs.fixed > 0) & (jobs.on >= 0)).tolist():
            column = int(jobs.on[position])
            spare[column] -= jobs.held[position]
            holders.setdefault(types[column], []).append(jobs.ids[position])
        return cls(types, workers.present, workers.free, on_purpose, absent - on_purpose, spare, holders)


def reasons(engine: TrainingEngine, *, drained: Mapping[str, int] = NONE_DRAINED) -> dict[str, Reason]:
    """The reason of every job that is here; `drained` says how many workers of each type left because of a drain.

    Which jobs start next is found with the shares as they are: it is best asked right after a round has begun.
    """
    jobs, room = engine.jobs, Room.of(engine, drained)
    where = jobs.rates > 0
    codes = np.where((where & (room.free > 0)).any(axis=1), "NotEnoughWorkers", "WaitingForShare").astype(object)
    details = (~jobs.shares.any(axis=1)).astype(object)
    for position, reason in _jobs_without_room(engine, np.flatnonzero(jobs.on < 0).tolist()):
        codes[position], details[position] = reason
    if (jobs.on < 0).any():
        starting = list(choose_next_round(snapshot(engine)))
        codes[starting], details[starting] = "WaitingForRound", False
    decided = set() if engine.allocation is None else set(engine.allocation.ids)
    new = [position for position, job in enumerate(jobs.ids) if job not in decided]
    codes[new], details[new] = "WaitingForRound", True
    for code, some in _blocked(where, jobs, room):
        codes[some] = code
    held = jobs.on >= 0
    codes[held] = np.where(jobs.since[held] > engine.now, "Starting", "Running")
    details[held] = jobs.on[held]
    known: dict[tuple[Code, bytes, tuple[int, int], object], Reason] = {}
    found: dict[str, Reason] = {}
    masks = [row.tobytes() for row in np.packbits(where, axis=1)]
    sizes = zip(jobs.scale.tolist(), jobs.part.tolist(), strict=True)
    rows = zip(codes.tolist(), masks, sizes, details.tolist(), strict=True)
    for position, (job, key) in enumerate(zip(jobs.ids, rows, strict=True)):
        if key not in known:
            types = [name for name, here in zip(room.types, where[position].tolist(), strict=True) if here]
            code, _, size, detail = key
            known[key] = Reason(code, _sentence(code, size, types, detail, room, engine.policy.name))
        found[job] = known[key]
    return found


def blocked(engine: TrainingEngine, position: int, room: Room) -> Reason | None:
    """What keeps one job from running whatever it is owed, if anything."""
    jobs = engine.jobs
    where, size = jobs.rates[position] > 0, (int(jobs.scale[position]), int(jobs.part[position]))
    codes = [code for code, some in _blocked(jobs.rates > 0, jobs, room) if some[position]]
    if not codes:
        return None
    types = [name for name, here in zip(room.types, where.tolist(), strict=True) if here]
    return Reason(codes[-1], _sentence(codes[-1], size, types, None, room, engine.policy.name))


def without_room(engine: TrainingEngine, position: int) -> Reason | None:
    """Why a job waits whose accelerators are reserved, or are idle without the CPUs or memory; None if it is not so."""
    return next((reason for _, reason in _jobs_without_room(engine, [position])), None)


def _jobs_without_room(engine: TrainingEngine, positions: Sequence[int]) -> Iterator[tuple[int, Reason]]:
    """Those of some waiting jobs that could not start on idle workers, or that have too few besides reserved ones."""
    jobs, pool = engine.jobs, engine.workers
    seconds = engine.options.round_seconds if engine.round_end is None else max(engine.round_end - engine.now, 0.0)
    kept = engine.reservations.kept(jobs, engine.now, seconds)
    if kept is None and not Fitting.is_needed(jobs, pool):
        return
    whole = None if kept is None else kept.fresh()
    fitting = Fitting.beside_all(jobs, pool, kept, engine.options.packing)
    for position in positions:
        scale, part = int(jobs.scale[position]), int(jobs.part[position])
        able = np.flatnonzero((jobs.rates[position] > 0) & (pool.present >= scale)).tolist()
        if whole is not None and able and all(
            pool.present[column] - whole.from_job(position, column) < scale or fitting.is_kept(position, column)
            for column in able
        ):  # fmt: skip
            yield position, Reason("Reserved", _reserved(engine, position, able, whole))
            continue
        enough = [column for column in able if pool.room[column] >= scale * part]
        if enough and not any(fitting.has_room(position, column) for column in enough):
            in_pieces = not any(np.count_nonzero(pool.room_of(column) >= part) >= scale for column in enough)
            if in_pieces:
                yield position, Reason("NotEnoughWorkers", _in_pieces(engine, position, enough))
            else:
                yield position, Reason("NotEnoughResources", _short_of(engine, position))


def _short_of(engine: TrainingEngine, position: int) -> str:
    cpus, memory = float(engine.jobs.cpus[position]), float(engine.jobs.memory[position])
    if not (cpus or memory):
        nodes, scale = int(engine.jobs.nodes[position]), int(engine.jobs.scale[position])
        where = "on one node" if nodes == 1 else f"on at most {nodes} nodes"
        return f"it asks for {scale} workers of one type {where}; so many are idle, but on more nodes"
    asked = resources_in_words(cpus, memory)
    return f"it asks for {asked}, and no machine with enough idle workers has so much left beside what runs there"


def _in_pieces(engine: TrainingEngine, position: int, columns: Sequence[int]) -> str:
    """What is left of the types is enough, but in parts of workers that are each too small."""
    jobs, pool, names = engine.jobs, engine.workers, [engine.types[column] for column in columns]
    wants = gang(int(jobs.scale[position]), names, int(jobs.part[position]))
    left = joined([f"{pool.room[column] / WHOLE:g} {engine.types[column]}" for column in columns], "and")
    most = max(int(pool.room_of(column).max(initial=0)) for column in columns)
    return f"it asks for {wants}, but the {left} that are free are in parts, none larger than {most / WHOLE:g}"


def _reserved(engine: TrainingEngine, position: int, columns: Sequence[int], kept: Kept) -> str:
    scale, part = int(engine.jobs.scale[position]), int(engine.jobs.part[position])
    promised = {
        f"{one.workers[engine.types[column]]} {engine.types[column]} for team '{one.team}' ({one.reservation})": None
        for column in columns
        for one in kept.promised(position, column)
    }
    wants = gang(scale, [engine.types[column] for column in columns], part)
    return f"it asks for {wants}, but too few are not reserved: {joined(list(promised), 'and')}"


def _blocked(where: BoolArray, jobs: JobTable, room: Room) -> list[tuple[Code, BoolArray]]:
    """Which jobs have too few workers, or too few that can be taken; the last code that holds for a job counts."""

    def too_few(workers: IntArray, asked: IntArray = jobs.scale) -> BoolArray:
        few: BoolArray = ~np.logical_or.reduce(where & (asked[:, None] <= workers), axis=1)
        return few

    undrained = room.present + room.drained
    return [
        ("Held", too_few(room.spare, jobs.held)),
        ("WorkersDrained", too_few(room.present)),
        ("WorkersLost", too_few(undrained)),
        ("Unrunnable", too_few(undrained + room.lost)),
    ]


def _sentence(code: Code, size: tuple[int, int], types: Sequence[str], detail: object, room: Room, policy: str) -> str:
    scale, part = size
    wants = f"it asks for {gang(scale, types, part)}"
    match code:
        case "Running" | "Starting":
            on = f"{so_many(scale, part)} {room.types[int(str(detail))]}"
            return f"it {'runs' if code == 'Running' else 'starts'} on {on}"
        case "WaitingForRound":
            if detail:
                return "nothing is decided about it yet; the next round does"
            return "it starts when the round ends, if nothing changes before"
        case "WaitingForShare":
            if detail:
                return f"{policy} gives it no share of {either(types)} now; others come first"
            return f"every {either(types)} is held by jobs that keep it or are owed more time"
        case "NotEnoughWorkers":
            return f"{wants} at once; some are free, but not so many of one type"
        case "NotEnoughResources" | "Reserved":
            return str(detail)
        case "Held":
            names = list(dict.fromkeys(job for name in types for job in room.holders.get(name, ())))
            hold = "holds" if len(names) == 1 else "hold"
            return f"{wants}, but {listed(names)}, not to be preempted, {hold} too many of them"
        case "Unrunnable" if not types:
            return "it makes no progress on any accelerator type of this cluster"
        case "Unrunnable":
            most = max(
                (int((room.present + room.drained + room.lost)[room.types.index(name)]) for name in types), default=0
            )
            return f"{wants}, but there are at most {most}"
        case "WorkersDrained":
            return f"{wants}, but {_missing(types, room, room.drained)} drained"
        case "WorkersLost":
            return f"{wants}, but {_missing(types, room, room.lost)} lost"


def _missing(types: Sequence[str], room: Room, counts: IntArray) -> str:
    every = room.present + room.drained + room.lost
    columns = [room.types.index(name) for name in types]
    parts = [f"{counts[column]} of {every[column]} {room.types[column]}" for column in columns if counts[column]]
    return f"{joined(parts, 'and')} {'is' if sum(counts[columns]) == 1 else 'are'}"


def gang(scale: int, types: Sequence[str], part: int = WHOLE) -> str:
    """So many workers of one of these types, or so many thousandths of each, in words."""
    if len(types) == 1 or scale == 1:
        return f"{so_many(scale, part)} {either(types)}"
    return f"{so_many(scale, part)} workers of one type ({either(types)})"


def so_many(scale: int, part: int = WHOLE) -> str:
    """How many workers, or parts of workers: 2, 0.5, or 2 × 0.5."""
    if part == WHOLE:
        return str(scale)
    return f"{part / WHOLE:g}" if scale == 1 else f"{scale} × {part / WHOLE:g}"


def either(names: Sequence[str]) -> str:
    """Names with "or" between the last two."""
    return joined(names, "or")


def listed(names: Sequence[str]) -> str:
    """The first few of some jobs, and how many more there are."""
    shown = [f"'{name}'" for name in names[:_MOST_NAMES]]
    if len(names) > _MOST_NAMES:
        shown.append(f"{len(names) - _MOST_NAMES} more")
    return joined(shown, "and")


def joined(words: Sequence[str], link: str) -> str:
    """Words with commas, and the link before the last."""
    return f"{', '.join(words[:-1])} {link} {words[-1]}" if len(words) > 1 else "".join(words)
