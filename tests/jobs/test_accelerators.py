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
