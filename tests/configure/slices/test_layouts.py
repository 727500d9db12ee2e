"""MIG's tables against what NVIDIA publishes, and the layouts that follow from them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain, combinations

import pytest

from fairway.configure.slices.layouts import (
    MigInstance,
    all_layouts,
    counts_of,
    largest_layouts,
    layouts_by_counts,
    refuse_illegal,
)
from fairway.configure.slices.mig import (
    A30,
    A100_40GB,
    A100_80GB,
    B200_180GB,
    DEVICES,
    H100_80GB,
    MigDevice,
    mig_device,
)
from fairway.errors import InputError

SEVEN = [A100_40GB, A100_80GB, H100_80GB, B200_180GB]
each_device = pytest.mark.parametrize("device", DEVICES.values(), ids=lambda device: device.name)


def classic(device: MigDevice) -> MigDevice:
    """Without the profile of one compute and two memory slices, which drivers have only since R525."""
    return replace(device, profiles=tuple(one for one in device.profiles if (one.compute, one.memory) != (1, 2)))


def layout(text: str) -> tuple[MigInstance, ...]:
    """As `nvidia-smi mig -lgi` shows it: `3g.20gb@4 1g.5gb@0`."""
    pairs = [word.split("@") for word in text.split()]
    return tuple(sorted(MigInstance(int(start), profile) for profile, start in pairs))


@pytest.mark.parametrize(
    ("device", "published"),
    [  # "Number of Instances Available" and "Fraction of Memory" in the MIG user guide, "Supported MIG Profiles"
        (A100_40GB, ["1g.5gb 7 1", "1g.10gb 4 2", "2g.10gb 3 2", "3g.20gb 2 4", "4g.20gb 1 4", "7g.40gb 1 8"]),
        (A100_80GB, ["1g.10gb 7 1", "1g.20gb 4 2", "2g.20gb 3 2", "3g.40gb 2 4", "4g.40gb 1 4", "7g.80gb 1 8"]),
        (B200_180GB, ["1g.23gb 7 1", "1g.45gb 4 2", "2g.45gb 3 2", "3g.90gb 2 4", "4g.90gb 1 4", "7g.180gb 1 8"]),
        (H100_80GB, ["1g.10gb 7 1", "1g.20gb 4 2", "2g.20gb 3 2", "3g.40gb 2 4", "4g.40gb 1 4", "7g.80gb 1 8"]),
        (A30, ["1g.6gb 4 1", "2g.12gb 2 2", "4g.24gb 1 4"]),
    ],
    ids=lambda value: value.name if isinstance(value, MigDevice) else "",
)  # fmt: skip
def test_there_are_as_many_instances_of_a_profile_as_nvidia_says(device: MigDevice, published: list[str]) -> None:
    rows = [
        f"{profile.name} {max(counts[number] for counts in layouts_by_counts(device))} {profile.memory}"
        for number, profile in enumerate(device.profiles)
    ]
    assert rows == published
    assert all(profile.compute == int(profile.name[0]) for profile in device.profiles)


@pytest.mark.parametrize("device", SEVEN, ids=lambda device: device.name)
def test_an_a100_has_the_nineteen_configurations_that_can_be_counted_by_hand(device: MigDevice) -> None:
    # The left half is 4g, 3g, or each of its quarters 2g or 1g+1g: 6 ways. The right half is 3g, or 2g or 1g+1g beside
    # a 1g: 3 ways. And there is the whole: 6 · 3 + 1.
    assert len(largest_layouts(classic(device))) == 19


def test_an_a30_has_the_configurations_that_others_list() -> None:
    found = {tuple(sorted(Counter(one.profile for one in layout).items())) for layout in largest_layouts(A30)}
    assert found == {  # github.com/nebuly-ai/nos, pkg/gpu/mig/known_configs.go
        (("4g.24gb", 1),),
        (("2g.12gb", 2),),
        (("1g.6gb", 2), ("2g.12gb", 1)),
        (("1g.6gb", 4),),
    }


@pytest.mark.parametrize(
    "text",
    [  # the examples of the MIG user guide, "Creating GPU Instances"
        "3g.20gb@4 3g.20gb@0",
        "1g.5gb@0 1g.5gb@1 2g.10gb@2 3g.20gb@4",
        "1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@6 2g.10gb@4",
    ],
)
def test_the_examples_of_the_guide_are_legal(text: str) -> None:
    refuse_illegal(A100_40GB, layout(text))
    assert layout(text) in all_layouts(A100_40GB)


@each_device
def test_every_layout_is_found_once_and_no_other_is_legal(device: MigDevice) -> None:
    """Against a filter over all sets of instances in their places, which knows nothing of the search."""
    places = [MigInstance(start, one.name) for one in device.profiles for start in one.starts]
    compute = {one.name: one.compute for one in device.profiles}
    memory = {one.name: one.memory for one in device.profiles}
    legal = set()
    for chosen in chain.from_iterable(combinations(places, size) for size in range(device.compute + 1)):
        if sum(compute[one.profile] for one in chosen) > device.compute:
            continue
        slices = [place for one in chosen for place in range(one.start, one.start + memory[one.profile])]
        if len(slices) == len(set(slices)) and all(place < device.memory for place in slices):
            legal.add(frozenset(chosen))
    found = all_layouts(device)
    assert len(found) == len(set(found))
    assert {frozenset(one) for one in found} == legal
    assert set(largest_layouts(device)) == {one for one in found if not any(frozenset(one) < other for other in legal)}


@each_device
def test_no_layout_has_more_slices_than_the_device(device: MigDevice) -> None:
    for one in all_layouts(device):
        refuse_illegal(device, one)
        parts = [device.profile(instance.profile) for instance in one]
        assert sum(part.compute for part in parts) <= device.compute
        assert sum(part.memory for part in parts) <= device.memory
        assert list(one) == sorted(one)


@each_device
def test_leaving_out_an_instance_leaves_a_legal_layout(device: MigDevice) -> None:
    legal = set(layouts_by_counts(device))
    for one in all_layouts(device):
        for instance in one:
            assert counts_of(device, [other for other in one if other != instance]) in legal


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("3g.20gb@2", "layout: 3g.20gb at 2 given, but on a a100-40gb it begins at 0, 4"),
        ("4g.20gb@0 1g.5gb@3", "layout: 1g.5gb at 3 and 4g.20gb at 0 both need slice 3"),
        ("5g.20gb@0", "profile: '5g.20gb' given, but a a100-40gb has 1g.5gb"),
    ],
)
def test_an_illegal_layout_is_refused_with_the_instance_that_is_wrong(text: str, line: str) -> None:
    with pytest.raises(InputError) as refused:
        refuse_illegal(A100_40GB, layout(text))
    assert str(refused.value).startswith(line)


def test_compute_slices_are_counted_where_places_alone_would_do() -> None:
    wide = replace(A100_40GB, compute=3)
    with pytest.raises(InputError, match="4 compute slices needed, but a a100-40gb has 3"):
        refuse_illegal(wide, layout("2g.10gb@0 2g.10gb@2"))
    assert all(sum(wide.profile(one.profile).compute for one in found) <= 3 for found in all_layouts(wide))


def test_a_device_without_a_table_is_refused() -> None:
    assert mig_device("a30") is A30
    with pytest.raises(InputError, match="device: 'l4' given, expected one of a30, a100-40gb"):
        mig_device("l4")
