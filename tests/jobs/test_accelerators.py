"""What a job asks for: whole accelerators, or a part of one."""

from __future__ import annotations

import pytest

from fairway.errors import InputError
from fairway.jobs.accelerators import AcceleratorRequest
from fairway.jobs.description import parse_job


@pytest.mark.parametrize(
    ("given", "types", "part"),
    [
        ("A100:0.5", ("a100",), 0.5),
        ("A100:.25", ("a100",), 0.25),
        ({"A100": 0.5}, ("a100",), 0.5),
        ("[A100, V100]:0.333", ("a100", "v100"), 0.333),
        ({"A100": 0.1, "V100": "0.1"}, ("a100", "v100"), 0.1),
    ],
)
def test_a_number_below_one_is_a_part_of_one_accelerator(given: object, types: tuple[str, ...], part: float) -> None:
    request = AcceleratorRequest.read(given)
    assert (request.types, request.count, request.part) == (types, 1, part)
    assert AcceleratorRequest.read(str(request)) == request, "the form in which it is stored reads as the same"
    assert request.workers == part


def test_whole_ones_are_as_they_were() -> None:
    assert AcceleratorRequest.read("A100:2") == AcceleratorRequest(("a100",), 2)
    assert AcceleratorRequest.read("A100:2.0") == AcceleratorRequest(("a100",), 2)
    assert str(AcceleratorRequest(("a100",), 2)) == "a100:2"
    assert AcceleratorRequest(("a100",), 2).workers == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("A100:1.5", "either whole ones or a part of one"),
        ({"A100": 2.5}, "either whole ones or a part of one"),
        ("A100:0", "a part of one accelerator below 1"),
        ("A100:0.0", "a part of one accelerator below 1"),
        ({"A100": -0.5}, "a whole number from 1"),
        ("A100:0.12345", "in thousandths, as in 0.123"),
        ("A100:0.00001", "in thousandths, as in 0.001"),
        ({"A100": 0.5, "V100": 1}, "the same count for every type"),
        ({"A100": float("nan")}, "a whole number from 1"),
    ],
)
def test_a_part_that_is_none_gets_one_line(given: object, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        AcceleratorRequest.read(given)
    assert "\n" not in str(caught.value)


def test_a_description_may_ask_for_a_part() -> None:
    job = parse_job("run: python train.py\nresources: {accelerators: A100:0.5}", "job.yaml")
    assert job.accelerators == AcceleratorRequest(("a100",), part=0.5)
    assert job.document()["resources"]["accelerators"] == "a100:0.5"
    several = parse_job("run: x\nresources:\n  accelerators: [A100, V100]:0.5", "job.yaml")
    assert several.accelerators.part == 0.5


MEMORY = {"A100": 40_000_000_000, "V100": 16_000_000_000, "T4": None}


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ("A100:20GB", 0.5),
        ("a100:10 GB", 0.25),
        ({"A100": "20GB"}, 0.5),
        ("[A100, V100]:8GB", 0.5),
        ("A100:1GB", 0.025),
        ("A100:40.0GB", 1.0),
        ("A100:13333333333B", 0.334),
    ],
)
def test_memory_is_the_part_of_the_smallest_accelerator_that_has_it(given: object, part: float) -> None:
    request = AcceleratorRequest.read(given)
    assert AcceleratorRequest.read(str(request)) == request, "the form in which it is stored reads as the same"
    found = request.with_parts(MEMORY)
    assert (found.part, found.count, found.memory_bytes) == (part, 1, None)
    assert found.types == request.types
    assert AcceleratorRequest.read("A100:0.25").with_parts(MEMORY).part == 0.25, "others are as they were"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("A100:41GB", "41 GB of 'A100' asked for, which has 40 GB"),
        ("[A100, V100]:20GB", "20 GB of 'V100' asked for, which has 16 GB"),
        ("T4:1GB", "how much memory it has is not known; ask for a part, as in T4:0.5, or declare it"),
        ("H100:1GB", "'h100' is not an accelerator of this cluster"),
    ],
)
def test_memory_that_there_is_not_is_refused(given: object, words: str) -> None:
    with pytest.raises(InputError) as refused:
        AcceleratorRequest.read(given).with_parts(MEMORY)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("A100:0GB", "of memory given, expected more than none"),
        ({"A100": "20GB", "V100": "8GB"}, "several amounts of memory given"),
        ({"A100": "20GB", "V100": 0.5}, "several amounts of memory given, or memory and a count"),
        ("A100:20XB", "given, expected"),
        ("A100:-20GB", "given, expected"),
    ],
)
def test_what_is_no_size_of_memory_gets_one_line(given: object, words: str) -> None:
    with pytest.raises(InputError) as refused:
        AcceleratorRequest.read(given)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
