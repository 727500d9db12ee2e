"""How are GPUs cut: are the layouts those that NVIDIA's tables allow, and is the choice for a load exact, and quick?

The layouts of each device are counted against a filter over all sets of instances in their places, which shares no code
with the search; what differs is the row, and should be nothing. The choice is asked for 500 loads of one to four models
by chance, a device each in turn, and three times each, of which the median counts; the peer deals out every full layout
in every way. The run fails if their prices differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from statistics import median

import numpy as np

from benchmarks._report import Options, Result, Turns, take_turns
from benchmarks._report import run as report
from benchmarks._slices import cheapest_by_brute_force, random_load
from fairway.configure.slices.choice import ModelLoad, choose_layout
from fairway.configure.slices.layouts import MigInstance, all_layouts, largest_layouts, layouts_by_counts
from fairway.configure.slices.mig import DEVICES, MigDevice

CHOICE_SECONDS = 0.005
PEER = "every way to deal out every layout"


def measure(options: Options) -> Iterator[Result]:
    for device in DEVICES.values():
        yield layouts(device)
    yield choices(40 if options.quick else 500, options)


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


if __name__ == "__main__":
    report("slices", measure)
