"""How accelerators are called, and those that are declared: emulated ones, which say so."""

from __future__ import annotations

import pytest

from fairway.errors import InputError
from fairway.live.backend.accelerators import (
    Accelerator,
    described,
    emulated_accelerators,
)
from fairway.live.devices.gpus import type_of_product


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("NVIDIA RTX A6000", "rtx-a6000"),
        ("Tesla K80", "k80"),
        ("NVIDIA", "gpu"),
    ],
)
def test_a_type_is_called_as_people_call_it(product: str, name: str) -> None:
    assert type_of_product(product) == name


def test_emulated_accelerators_say_so() -> None:
    slots = emulated_accelerators("v100=2,k80=1")
    assert [(one.type, one.number, one.emulated) for one in slots] == [
        ("v100", 0, True),
        ("v100", 1, True),
        ("k80", 0, True),
    ]
    assert all("emulated" in one.description and one.emulated for one in slots)
    assert described(slots) == "2 v100 (emulated), 1 k80 (emulated)"
    with pytest.raises(InputError, match=r"^emulate: 'v100' given, expected TYPE=COUNT"):
        emulated_accelerators("v100")
    assert described([]) == "none"


def test_a_name_that_lasts_does_not_depend_on_the_number_and_tells_machines_apart() -> None:
    gpu = Accelerator("a100", 2, device="GPU-7")
    assert gpu.lasting_name == "GPU-7" == Accelerator("a100", 1, device="GPU-7").lasting_name
    assert Accelerator("a100", 2, device="GPU-7", node="node-3").lasting_name == "node-3/GPU-7"
    slots = [Accelerator("v100", 0, node=name) for name in ("node-1", "node-2")]
    assert [one.lasting_name for one in slots] == ["node-1/emulated-0", "node-2/emulated-0"]
    assert slots[0].description == "v100 0 (emulated in node-1)"
