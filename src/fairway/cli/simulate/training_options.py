"""What `fairway simulate training` was asked for, checked, and turned into runs.

Every way in which the options, or the files that they name, can be wrong ends here, before anything runs.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from fairway.allocate.packing.packer import rule_named
from fairway.allocate.registry import policy_of
from fairway.cli.output import STDOUT
from fairway.cli.server.teams import teams_of
from fairway.cli.simulate.options import installed_version
from fairway.cluster import Cluster
from fairway.cluster_file import read_cluster
from fairway.compat.gavel.policies import compat_policy
from fairway.errors import InputError
from fairway.jobs import Entity
from fairway.options import nearest
from fairway.profiles import catalog
from fairway.quantities import seconds_of
from fairway.report.tables import check_table_file
from fairway.sim.comparison import TrainingRun
from fairway.sim.profiling import ProfiledPartners, Profiling
from fairway.sim.submissions import TrainingOptions
from fairway.sim.workload import Workload
from fairway.traces import GeneratorOptions, Scaling, Trace, parse_generate

BUILTIN = "builtin"
_TEAMS_IN_AN_ERROR = 10

_WINDOW = re.compile(r"\s*(\d{1,18})\s*:\s*(\d{1,18})\s*")
_PROFILING = re.compile(r"\s*(\d*\.?\d+)\s*(?::\s*(\d{1,9})\s*)?")


@dataclass(frozen=True, slots=True)
class TrainingOptionsGiven:
    """The options of `fairway simulate training` as they were given."""

    cluster: str
    policies: tuple[str, ...]
    trace: str | None = None
    format: str | None = None
    generate: str | None = None
    speed_up: float | None = None
    fraction: float | None = None
    replicate: int | None = None
    profiles: str = BUILTIN
    seeds: tuple[int, ...] = ()
    round_seconds: float = 360.0
    restart_seconds: float = 0.0
    profiling: str | None = None
    estimator: str | None = None
    hide_lengths: bool = False
    compat: str | None = None
    window: str | None = None
    teams: str | None = None
    processes: int | None = None
    keep_leases: bool = False
    packing: str = "fgd"

    def scaling(self) -> Scaling:
        """What becomes of the load of a trace."""
        given = {"speed_up": self.speed_up, "fraction": self.fraction, "replicate": self.replicate}
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if chosen and self.generate is not None:
            option = next(iter(chosen)).replace("_", "-")
            raise InputError(f"--{option}: given with --generate, whose load is its rate; change rate or jobs there")
        try:
            return Scaling(**chosen)
        except InputError as error:
            raise InputError(f"--{error}") from None

    def settings(self) -> dict[str, Any]:
        """All that is needed to repeat the runs but the policy and the seed, by the names of the options."""
        given = {
            "trace": self.trace,
            "format": self.format,
            "generate": self.generate,
            "speed-up": self.speed_up,
            "fraction": self.fraction,
            "replicate": self.replicate,
            "profiles": self.profiles,
            "cluster": self.cluster,
            "round-seconds": self.round_seconds,
            "restart-seconds": self.restart_seconds,
            "profiling": self.profiling,
            "estimator": self.estimator,
            "hide-lengths": self.hide_lengths or None,
            "compat": self.compat,
            "window": self.window,
            "teams": self.teams,
            "packing": None if self.packing == "fgd" else self.packing,
        }
        return {name: value for name, value in given.items() if value is not None}

    def command(self) -> str:
        """The command that repeats all runs."""
        words = ["fairway", "simulate", "training"]
        for name, value in self.settings().items():
            words.append(f"--{name}")
            if value is not True:
                words.append(f"{value:g}" if isinstance(value, float) else str(value))
        for policy in self.policies:
            words += ["--policy", policy]
        for seed in self.seeds:
            words += ["--seed", str(seed)]
        return shlex.join(words)


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs, what to call each, how many jobs have to end in one, and what to tell before they start."""

    runs: tuple[TrainingRun, ...]
    labels: tuple[str, ...]
    jobs: int
    notes: tuple[str, ...]


def plan_of(asked: TrainingOptionsGiven) -> Plan:
    """Check everything that can be checked beforehand, and plan the runs: seed by seed, policy by policy."""
    for policy in asked.policies:
        policy_of(policy)
    for seed in asked.seeds:
        if seed < 0:
            raise InputError(f"--seed: {seed} given, expected a whole number of at least 0")
    if asked.processes is not None and asked.processes < 1:
        raise InputError(f"--processes: {asked.processes} given, expected a whole number of at least 1")
    packing = rule_named(asked.packing)
    compat = _compat(asked)
    profiling = _profiling(asked.profiling, asked.estimator)
    _check_seconds("--round-seconds", asked.round_seconds, above_zero=True)
    _check_seconds("--restart-seconds", asked.restart_seconds)
    window = _window(asked.window)
    teams = {} if asked.teams is None else teams_of(asked.teams)
    generator = _generator(asked, window)
    cluster = catalog.priced(read_cluster(asked.cluster))
    workload = Workload(
        asked.trace,
        asked.format,
        generator,
        None if asked.profiles == BUILTIN else asked.profiles,
        scaling=asked.scaling(),
    )
    if profiling is not None:  # refuses a table without enough references, or without any pairs at all
        ProfiledPartners(workload.table(), profiling, seed=0)
    workload.table()
    trace = workload.read_trace()
    notes = [trace.summary()] if trace is not None else []
    jobs = _number_of_jobs(trace, generator)
    if trace is not None and jobs is not None and not workload.scaling.changes_nothing:
        jobs = workload.scaling.jobs_of(jobs)
        notes.append(f"load: {jobs} jobs of the trace, {workload.scaling.words()}")
    _check_window(window, jobs, asked.trace or "--generate")
    entities = _entities(teams, trace)
    if teams and not _has_teams(trace):
        workload = replace(workload, teams=tuple(teams))
        notes.append(f"teams: the jobs have none of their own, and are dealt in turn to {', '.join(teams)}")
    _check_jobs(workload, cluster)
    runs, labels = [], []
    for seed in asked.seeds or (generator.seed if generator else 0,):
        seeded = replace(
            workload,
            generator=_seeded(generator, asked.generate, seed),
            scaling=replace(workload.scaling, seed=seed),
        )
        options = TrainingOptions(
            round_seconds=asked.round_seconds,
            restart_seconds=asked.restart_seconds,
            compat=compat,
            window=window,
            seed=seed,
            keep_leases=asked.keep_leases,
            entities=entities,
            profiling=profiling,
            hide_lengths=asked.hide_lengths,
            packing=packing,
        )
        for policy in asked.policies:
            settings = {**asked.settings(), "policy": policy, "seed": seed, "version": installed_version()}
            if cluster.prices:
                settings["prices"] = dict(cluster.prices)
            if entities:
                settings["entities"] = {
                    name: {"weight": entity.weight, "policy": entity.policy} for name, entity in entities.items()
                }
            runs.append(TrainingRun(seeded, cluster, policy, options, settings))
            labels.append(f"{policy}, seed {seed}" if len(asked.seeds) > 1 else policy)
    total = window[1] - window[0] if window else jobs
    assert total is not None  # a stream without end has a window, as _generator saw
    return Plan(tuple(runs), tuple(labels), total, tuple(notes))


def round_of(span: str | None, seconds: float | None) -> float:
    """The length of a round, given in either way; six minutes otherwise."""
    if span is None:
        return 360.0 if seconds is None else seconds
    if seconds is not None:
        raise InputError("--round and --round-seconds both given; choose one of them")
    try:
        return seconds_of(span)
    except InputError as error:
        raise InputError(f"--round: {error}") from None


def format_of(format: str | None, columns: str | None) -> str | None:  # noqa: A002
    """The format of a trace, where its columns may be named instead."""
    if columns is None:
        return format
    if format not in {None, "csv"}:
        raise InputError(
            f"--columns: given with --format {format}, which has columns of its own; leave out one of them"
        )
    return f"csv:{columns}"


def one_of(option: str, given: Sequence[str] | None) -> str | None:
    """The value of an option that may be given once."""
    if given and len(given) > 1:
        raise InputError(f"{option}: given {len(given)} times; give it once, or compare loads by fairway sweep")
    return given[0] if given else None


def check_outputs(
    json_to: str | None,
    report: str | None,
    save: str | None = None,
    perfetto: str | None = None,
    **tables: str | None,
) -> None:
    """Refuse files that cannot be written, before hours are spent on what should go there."""
    for option, file, like in (
        ("--report", report, "report.html"),
        ("--save", save, "run.fairway"),
        ("--perfetto", perfetto, "run.perfetto-trace"),
    ):
        if file == STDOUT:
            raise InputError(f"{option}: '-' given, expected the name of a file, as in {like}")
    given = {"--json": json_to, "--report": report, "--save": save, "--perfetto": perfetto}
    for word, table in tables.items():
        option = f"--{word.replace('_', '-')}"
        given[option] = table
        if table is not None:
            check_table_file(option, table)
    taken: dict[str, str] = {}
    for name, file in given.items():
        if file is None or (file == STDOUT and name == "--json"):
            continue
        _check_writable(name, Path(os.path.realpath(file)), file)
        other = taken.setdefault(os.path.realpath(file), name)
        if other != name:
            raise InputError(f"{other} and {name} both go to {file}; name two files")


def _check_writable(option: str, path: Path, given: str) -> None:
    if not given:
        raise InputError(f"{option}: nothing given, expected the name of a file")
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "Is a directory")
        if path.exists() and not path.is_file():  # a device or a pipe, to which one can only write
            allowed = os.access(path, os.W_OK)
        else:
            with tempfile.TemporaryFile(dir=path.parent):
                allowed = not path.exists() or os.access(path, os.W_OK)
        if not allowed:
            raise PermissionError(0, "Permission denied")
    except OSError as error:
        raise InputError(f"{given}: cannot be written: {error.strerror or error}; name a file that can") from None


def _compat(asked: TrainingOptionsGiven) -> Literal["gavel"] | None:
    if asked.compat is None:
        return None
    if asked.compat != "gavel":
        raise InputError(f"--compat: '{asked.compat}' given, expected 'gavel', the only mechanism there is to follow")
    for policy in asked.policies:
        compat_policy(policy)
    for option, given in (
        ("--restart-seconds", asked.restart_seconds > 0),
        ("--profiling", asked.profiling),
        ("--packing", asked.packing != "fgd"),
        ("--hide-lengths", asked.hide_lengths),
    ):
        if given:
            raise InputError(f"{option}: given with --compat gavel, which knows none; take one of them away")
    return "gavel"


def _profiling(text: str | None, estimator: str | None) -> Profiling | None:
    """Read `0.2` or `0.2:16`, the fraction that is measured and the number of references."""
    if text is None:
        if estimator is not None:
            raise InputError(
                "--estimator: given without --profiling, so that nothing is estimated; add --profiling 0.2"
            )
        return None
    match = _PROFILING.fullmatch(text)
    if not match:
        raise InputError(f"--profiling: '{text}' given, expected FRACTION or FRACTION:REFERENCES, as in 0.2:16")
    return Profiling(float(match[1]), int(match[2] or Profiling().references), estimator or Profiling().estimator)


def _check_seconds(option: str, seconds: float, *, above_zero: bool = False) -> None:
    if not (math.isfinite(seconds) and (seconds > 0 if above_zero else seconds >= 0)):
        bound = "above 0" if above_zero else "of at least 0"
        raise InputError(f"{option}: {seconds:g} given, expected seconds {bound}")


def _window(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = _WINDOW.fullmatch(text)
    if not match or int(match[1]) >= int(match[2]):
        raise InputError(f"--window: '{text}' given, expected FIRST:END with FIRST below END, as in 4000:5000")
    return int(match[1]), int(match[2])


def _check_window(window: tuple[int, int] | None, jobs: int | None, source: str) -> None:
    if window is not None and jobs is not None and window[1] > jobs:
        raise InputError(
            f"--window: {window[0]}:{window[1]} given, but {source} has {jobs} jobs, numbered from 0; "
            f"end at {jobs} or before"
        )


def _generator(asked: TrainingOptionsGiven, window: tuple[int, int] | None) -> GeneratorOptions | None:
    if asked.trace is not None and asked.generate is not None:
        raise InputError("--trace and --generate both given; choose one of them")
    if asked.generate is None:
        if asked.trace is None:
            raise InputError("neither --trace nor --generate given; name a trace, or generate jobs=200,rate=4")
        return None
    if asked.format is not None:
        raise InputError("--format: given with --generate, which reads no file; take one of them away")
    generator = parse_generate(asked.generate)
    if generator.jobs is None and window is None:
        raise InputError("--generate: no jobs=COUNT given, so that it never ends; add one, or a --window A:B to count")
    return generator


def _seeded(generator: GeneratorOptions | None, text: str | None, seed: int) -> GeneratorOptions | None:
    """The generator with this seed, unless the text names its own."""
    if generator is None or text is None or any(part.partition("=")[0].strip() == "seed" for part in text.split(",")):
        return generator
    return replace(generator, seed=seed)


def _number_of_jobs(trace: Trace | None, generator: GeneratorOptions | None) -> int | None:
    if trace is not None:
        return len(trace.jobs)
    return generator.jobs if generator else None


def _has_teams(trace: Trace | None) -> bool:
    return trace is not None and any(job.entity is not None for job in trace.jobs)


def _entities(teams: Mapping[str, Entity], trace: Trace | None) -> dict[str, Entity]:
    """The teams that were given and, at weight 1, the others of the trace."""
    if not teams or trace is None or not _has_teams(trace):
        return dict(teams)
    owners = dict.fromkeys(job.entity for job in trace.jobs if job.entity is not None)
    for name in teams:
        if name not in owners:
            hint = nearest(name, owners) or _known_teams(list(owners))
            raise InputError(f"--teams: '{name}' owns no job of {trace.source}{hint}")
    return {name: teams.get(name, Entity()) for name in owners}


def _known_teams(names: Sequence[str]) -> str:
    return f"; its teams are {', '.join(names[:_TEAMS_IN_AN_ERROR])}{', …' if len(names) > _TEAMS_IN_AN_ERROR else ''}"


def _check_jobs(workload: Workload, cluster: Cluster) -> None:
    """Let all jobs of a trace, or the first of a stream, find their rates."""
    for _ in workload.submissions(cluster):
        if workload.generator is not None:
            break
