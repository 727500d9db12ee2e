"""What a machine has: GPUs through NVIDIA's library (here a stand-in for it), or emulated ones, which say so."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from fairway.errors import InputError
from fairway.live.backend.accelerators import (
    Accelerator,
    described,
    emulated_accelerators,
    found_accelerators,
    type_of_product,
)


class NVMLError(Exception):
    pass


def library(*products: str | bytes, driver: bool = True, unified: bool = False) -> SimpleNamespace:
    def init() -> None:
        if not driver:
            raise NVMLError("no driver")

    def memory(_: int) -> SimpleNamespace:
        if unified:
            raise NVMLError("not supported")
        return SimpleNamespace(total=16 * 2**30)

    return SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=init,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: len(products),
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda index: products[index],
        nvmlDeviceGetUUID=lambda index: f"GPU-{index}",
        nvmlDeviceGetMemoryInfo=memory,
    )


def test_gpus_are_found_and_numbered_within_their_type(monkeypatch: pytest.MonkeyPatch) -> None:
    products = ("Tesla V100-SXM2-16GB", b"NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB")
    monkeypatch.setitem(sys.modules, "pynvml", library(*products))
    found = found_accelerators()
    assert [(one.type, one.number, one.device) for one in found] == [
        ("v100", 0, "GPU-0"),
        ("a100", 0, "GPU-1"),
        ("v100", 1, "GPU-2"),
    ]
    assert found[0].description == "v100 0 (Tesla V100-SXM2-16GB, 16 GiB)"
    assert not found[0].emulated
    assert described(found) == "2 v100, 1 a100"


def test_a_gpu_without_memory_of_its_own_is_found_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library("NVIDIA GB10", unified=True))
    assert found_accelerators() == [Accelerator("gb10", 0, "GPU-0", "NVIDIA GB10", None)]


def test_without_a_driver_or_the_library_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library("NVIDIA T4", driver=False))
    assert found_accelerators() == []
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert found_accelerators() == []
    assert described([]) == "none"


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


def test_a_name_that_lasts_does_not_depend_on_the_number_and_tells_machines_apart() -> None:
    gpu = Accelerator("a100", 2, device="GPU-7")
    assert gpu.lasting_name == "GPU-7" == Accelerator("a100", 1, device="GPU-7").lasting_name
    assert Accelerator("a100", 2, device="GPU-7", node="node-3").lasting_name == "node-3/GPU-7"
    slots = [Accelerator("v100", 0, node=name) for name in ("node-1", "node-2")]
    assert [one.lasting_name for one in slots] == ["node-1/emulated-0", "node-2/emulated-0"]
    assert slots[0].description == "v100 0 (emulated in node-1)"
