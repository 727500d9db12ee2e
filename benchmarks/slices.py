"""How are GPUs cut: are the layouts those that NVIDIA's tables allow, and is the choice for a load exact, and quick?

The layouts of each device are counted against a filter over all sets of instances in their places, which shares no code
with the search; what differs is the row, and should be nothing. The choice is asked for 500 loads of one to four models
by chance, a device each in turn, and three times each, of which the median counts; the peer deals out every full layout
in every way. The run fails if their prices differ.

How full is a cluster whose jobs ask for parts of GPUs, by the rule that places them? Alibaba's trace (`_openb`) is run
until it is full: GPUs count as allocated as far as pods asked for them, so that a whole GPU for half a one counts half.
The means are those of five seeds. A placement is timed on the same cluster, nearly full, where pods come and go.

What do enforced slices of a worker hold (`_enforced_slices`)? Two stages with 1/4 and 3/4 of one, asked for all of the
time, against the times that `fairway profile --slices` has measured of each alone; a stage while its neighbour spins in
four processes, against the same without control groups; a neighbour that takes memory without end; and the mean latency
of the same requests against what the simulator says. These are measured by the clock: the machine should do nothing
else.

How do all schedulers do on `esg-apps` where GPUs are cut as MIG allows, or shared by MPS (`_sliced_apps`)? Rows say how
many requests are in time, against the same scheduler with any number of slices.

`--only openb` runs one part alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks._enforced_slices import PARTS as PARTS_OF_WORKER
from benchmarks._enforced_slices import (
    both_busy,
    live_against_simulated,
    profiled,
    slowed_by_a_spinner,
    touched_by_a_greedy_one,
)
from benchmarks._openb import filled, openb, seconds_of_placements
from benchmarks._report import Options, Result, Turns, spread, take_turns
from benchmarks._report import run as report
from benchmarks._sliced_apps import SCHEDULERS, apps_under
from benchmarks._slices import cheapest_by_brute_force, random_load
from fairway.allocate.packing.packer import RULES, Rule
from fairway.configure.slices.choice import ModelLoad, choose_layout
from fairway.configure.slices.layouts import MigInstance, all_layouts, largest_layouts, layouts_by_counts
from fairway.configure.slices.mig import DEVICES, MigDevice
from fairway.live.machine.containment import Containment

HELD_PERCENT = 10.0
CHOICE_SECONDS = 0.005
PEER = "every way to deal out every layout"


PLACEMENTS = 1_000_000
PLACEMENT_SECONDS = 60.0


def measure(options: Options) -> Iterator[Result]:
    parts = {
        "layouts": _layouts, "choices": _choices, "openb": full_clusters, "placements": placements,
        "enforced": enforced, "esg-apps": apps_on_slices,
    }  # fmt: skip
    for name, part in parts.items():
        if options.only in {None, name}:
            yield from part(options)


PARTS = ("layouts", "choices", "openb", "placements", "enforced", "esg-apps")


def _layouts(options: Options) -> Iterator[Result]:  # noqa: ARG001
    for device in DEVICES.values():
        yield layouts(device)


def _choices(options: Options) -> Iterator[Result]:
    yield choices(40 if options.quick else 500, options)


def full_clusters(options: Options) -> Iterator[Result]:
    """How many GPUs are allocated by each rule when the cluster is full."""
    trace = openb(every=20 if options.quick else 1)
    seeds = range(options.seed, options.seed + (1 if options.quick else 5))
    runs = {rule: [filled(trace, rule, seed) for seed in seeds] for rule in RULES}
    allocated = {rule: [run.allocated for run in found] for rule, found in runs.items()}
    compared: tuple[tuple[Rule, Rule, float], ...] = (("fgd", "best-fit", 1.0), ("best-fit", "whole", 1.1))
    for ours, peer, target in compared:
        found = [one / other for one, other in zip(allocated[ours], allocated[peer], strict=True)]
        yield Result(
            f"openb until it is full, {ours}",
            "GPUs allocated",
            mean(allocated[ours]),
            peer_name=peer,
            peer=mean(allocated[peer]),
            ratio=mean(allocated[ours]) / mean(allocated[peer]),
            target=None if options.quick else target,
            spread=spread(found),
            extra={
                "gpus": trace.gpus,
                "allocated_part": mean(allocated[ours]) / trace.gpus,
                "peer_allocated_part": mean(allocated[peer]) / trace.gpus,
                "fragmented": mean(run.fragmented for run in runs[ours]),
                "peer_fragmented": mean(run.fragmented for run in runs[peer]),
                "seeds": len(found),
                "best_in_seeds": sum(ratio >= 1 for ratio in found),
            },
        )


def placements(options: Options) -> Iterator[Result]:
    """CPU seconds for a million placements of pods, by each rule."""
    trace, count = openb(), 2_000 if options.quick else PLACEMENTS
    for rule in RULES[:2]:
        seconds, held = seconds_of_placements(trace, rule, options.seed, count)
        yield Result(
            f"{count} placements on openb, {rule}",
            "s",
            seconds,
            target=None if options.quick else PLACEMENT_SECONDS,
            extra={"held_part": held},
        )


def layouts(device: MigDevice) -> Result:
    found, allowed = {frozenset(one) for one in all_layouts(device)}, _filtered(device)
    return Result(
        f"layouts of {device.name} that are not those of the tables",
        "layouts",
        len(found ^ allowed),
        target=0,
        extra={
            "all": len(found),
            "largest": len(largest_layouts(device)),
            "different_counts": len(layouts_by_counts(device)),
        },
    )


def _filtered(device: MigDevice) -> set[frozenset[MigInstance]]:
    places = [MigInstance(start, one.name) for one in device.profiles for start in one.starts]
    sizes = {one.name: (one.compute, one.memory) for one in device.profiles}
    allowed = set()
    for count in range(device.compute + 1):
        for chosen in combinations(places, count):
            slices = [place for one in chosen for place in range(one.start, one.start + sizes[one.profile][1])]
            if len(slices) == len(set(slices)) and sum(sizes[one.profile][0] for one in chosen) <= device.compute:
                allowed.add(frozenset(chosen))
    return allowed


def choices(count: int, options: Options) -> Result:
    generator = np.random.default_rng(options.seed)
    devices = list(DEVICES.values())
    loads = [(device := devices[number % len(devices)], random_load(device, generator)) for number in range(count)]
    for device in devices:
        choose_layout(device, [])  # the layouts of a device are enumerated once in a process
    ours: list[float] = []
    theirs: list[float] = []
    held = 0
    for device, load in loads:
        mine, peer = _turns(device, load)
        if mine.answer.price != peer.answer:
            raise SystemExit(f"{device.name}: {load}: {mine.answer.price} slices, but {peer.answer} would do")
        held += mine.answer.layout is not None
        ours.append(median(mine.seconds))
        theirs += peer.seconds
    return Result(
        f"choice of a layout, slowest of {count} loads",
        "s",
        max(ours),
        peer_name=PEER,
        peer=max(theirs),
        target=None if options.quick else CHOICE_SECONDS,
        extra={"median": median(ours), "peer_median": median(theirs), "loads_that_fit": held},
    )


def _turns(device: MigDevice, load: list[ModelLoad]) -> list[Turns]:
    return take_turns((lambda: choose_layout(device, load), 3), (lambda: cheapest_by_brute_force(device, load), 1))


def enforced(options: Options) -> Iterator[Result]:
    """What slices hold that are enforced here."""
    if not {"cpu", "memory"} <= Containment.enforced_here():
        raise SystemExit("no control group can be bounded here, so nothing is enforced")
    with TemporaryDirectory(prefix="fairway-") as directory:
        measured = profiled(Path(directory))
        for name, percent in both_busy(measured, 2.0 if options.quick else 15.0).items():
            yield Result(
                f"{PARTS_OF_WORKER[name].part:g} of a worker, both busy: mean time off its profile", "%", abs(percent),
                target=HELD_PERCENT, extra={"longer_percent": percent, "profile_seconds": measured.seconds[name]},
            )  # fmt: skip
        turns = 2 if options.quick else 5
        ours, peer = slowed_by_a_spinner(turns, held=True), slowed_by_a_spinner(turns, held=False)
        yield Result(
            "beside a neighbour that spins: mean time longer", "%", median(ours),
            peer_name="without control groups", peer=median(peer), target=HELD_PERCENT,
            extra={"turns": ours, "peer_turns": peer},
        )  # fmt: skip
        lost, answer = touched_by_a_greedy_one()
        yield Result(
            "beside one that allocates without end: requests and processes lost", "lost", lost, target=0,
            extra={"its_answer": answer},
        )  # fmt: skip
        live, simulated = live_against_simulated(measured, 30 if options.quick else 150, options.seed)
        yield Result(
            "live against simulated: mean latency off", "%", 100 * abs(live / simulated - 1), target=HELD_PERCENT,
            extra={"live_seconds": live, "simulated_seconds": simulated},
        )  # fmt: skip


def apps_on_slices(options: Options) -> Iterator[Result]:
    """All schedulers on `esg-apps` with MIG's instances, and with MPS, against any number of slices."""
    for one in apps_under(SCHEDULERS, quick=options.quick):
        for sharing, (hit, cost) in one.shared.items():
            yield Result(
                f"{one.scheduler}, {sharing}: in time", "%", 100 * hit, peer_name="any number of slices",
                peer=100 * one.free[0], ratio=hit / one.free[0] if one.free[0] else None,
                extra={"dollars_per_1000": cost, "peer_dollars_per_1000": one.free[1]},
            )  # fmt: skip


if __name__ == "__main__":
    report("slices", measure, PARTS)
