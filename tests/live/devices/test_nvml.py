"""The GPUs of a machine as the real bindings of NVML see them, on a stand-in for the driver's library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairway.live.backend.accelerators import GONE, Accelerator, accelerators_of, described, seen_again
from fairway.live.devices.amd import AmdSmi
from fairway.live.devices.gpus import Findings, Gpu, MigInstance
from tests.live.devices.machine import A100, A100_PARTS, GB10, H100, L4, Machine

LOOK = """
import dataclasses, json, sys
from pathlib import Path
from fairway.live.devices.look import GpuWatch
seen = []
with GpuWatch() as watch:
    for text in [None, *sys.argv[2:]]:
        if text is not None:
            Path(sys.argv[1]).write_text(text)
        seen.append(dataclasses.asdict(watch.look()))
print(json.dumps(seen))
"""


def looks(machine: Machine, *later: str) -> list[dict[str, Any]]:
    """What is found, and found again after the driver has something else."""
    done = machine.python(LOOK, str(machine.file), *later)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def look(machine: Machine) -> dict[str, Any]:
    return looks(machine)[0]


def test_an_a100_is_found_with_its_instances(machine: Machine) -> None:
    machine.has(A100, *A100_PARTS)
    (gpu,) = look(machine)["gpus"]
    assert (gpu["name"], gpu["uuid"], gpu["memory_bytes"], gpu["mig"]) == (
        "NVIDIA A100-SXM4-40GB",
        "GPU-a100",
        40960 * 2**20,
        True,
    )
    assert [(one["uuid"], one["profile"], one["slices"], one["memory_bytes"]) for one in gpu["instances"]] == [
        ("MIG-three", "3g.20gb", 3, 20096 * 2**20),
        ("MIG-two", "2g.10gb", 2, 9856 * 2**20),
        ("MIG-one", "1g.5gb", 1, 4864 * 2**20),  # without a name it follows from slices and memory
    ]
    assert gpu["compute_mode"] == "default"
    assert gpu["reading"]["utilization"] == 0.35
    assert gpu["reading"]["memory_used_bytes"] == 2048 * 2**20
    assert gpu["reading"]["power_watts"] == 98.5


def test_the_driver_is_named_and_nvlink_pairs_are_found(machine: Machine) -> None:
    machine.has(H100.format(0, "1"), H100.format(1, "0"), L4)
    found = look(machine)
    assert found["driver"] == "580.65.06"
    assert [gpu["links"] for gpu in found["gpus"]] == [["GPU-h100-1"], ["GPU-h100-0"], []]
    assert found["gpus"][0]["compute_mode"] == "exclusive-process"
    assert found["gpus"][0]["reading"]["temperature_celsius"] == 64
    assert found["gpus"][2]["mig"] is None, "an L4 cannot be cut"


def test_a_chip_with_the_memory_of_the_machine_reports_none(machine: Machine) -> None:
    machine.has(GB10)
    (gpu,) = look(machine)["gpus"]
    assert gpu["memory_bytes"] is None
    assert gpu["unified_memory"]
    assert gpu["sick"] is None
    assert gpu["reading"]["power_watts"] is None
    assert gpu["reading"]["utilization"] == 0.12


def test_a_gpu_that_falls_off_the_bus_keeps_its_place_and_is_sick(machine: Machine) -> None:
    machine.has(H100.format(0, ""), L4)
    first, second = looks(machine, f"{H100.format(0, '')}|lost=1\n{L4}\n")
    assert [gpu["sick"] for gpu in first["gpus"]] == [None, None]
    lost, other = second["gpus"]
    assert (lost["uuid"], other["uuid"]) == ("GPU-h100-0", "GPU-l4")
    assert lost["sick"] == "the GPU is lost: it has fallen off the bus or is otherwise inaccessible"
    assert lost["reading"]["utilization"] is None
    assert other["sick"] is None


def test_a_gpu_that_was_lost_before_the_first_look_is_remarked_upon(machine: Machine) -> None:
    machine.has(f"{H100.format(0, '')}|lost=1", L4)
    found = look(machine)
    assert [gpu["uuid"] for gpu in found["gpus"]] == ["GPU-l4"]
    assert found["remarks"] == [
        "GPU 0 cannot be used: the GPU is lost: it has fallen off the bus or is otherwise inaccessible"
    ]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("xid=79", "XID 79: the GPU has fallen off the bus"),
        ("xid=48", "XID 48: a double-bit ECC error"),
        ("xid=9999", "XID 9999: see the list of XID errors of NVIDIA"),
        ("xid=31", None),
        ("rows=1", "memory is broken: a row could not be remapped"),
        ("ecc=2", None),
    ],
)
def test_which_faults_make_a_gpu_sick(machine: Machine, fault: str, reason: str | None) -> None:
    machine.has(f"gpu|name=NVIDIA L4|uuid=GPU-l4|memory=23034|{fault}")
    first, again = looks(machine, machine.file.read_text())
    assert first["gpus"][0]["sick"] == reason
    assert again["gpus"][0]["sick"] == reason, "an error is reported once, and is not forgotten"


def test_a_gpu_that_has_to_be_reset_is_sick(machine: Machine) -> None:
    machine.has(L4)
    _, after = looks(machine, f"{L4}|reset=1\n")
    assert after["gpus"][0]["sick"] == "the GPU has to be reset before it can be used again"


def test_without_a_driver_there_are_none_for_a_reason(machine: Machine, tmp_path: Path) -> None:
    found = look(machine)  # the library is there, but its driver is not loaded
    assert found["gpus"] == []
    assert found["remarks"] == ["no GPU of NVIDIA: driver Not Loaded"]
    machine.has()
    assert look(machine)["remarks"] == ["the driver of NVIDIA lists no GPU"]


def test_without_the_library_or_its_bindings_there_are_none_for_a_reason() -> None:
    program = (
        "import sys; sys.modules['pynvml'] = None; from fairway.live.devices.look import found_gpus as f; print(f())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert "install Fairway with its extra 'nvidia'" in done.stdout


def findings(*gpus: Gpu) -> Findings:
    return Findings(gpus)


def test_gpus_become_accelerators_numbered_within_their_type() -> None:
    found = accelerators_of(
        findings(
            Gpu("Tesla V100-SXM2-16GB", "GPU-0", 16 * 2**30, links=("GPU-2",)),
            Gpu("NVIDIA A100-SXM4-80GB", "GPU-1", 80 * 2**30),
            Gpu("Tesla V100-SXM2-16GB", "GPU-2", 16 * 2**30, sick="XID 79"),
        )
    )
    assert [(one.type, one.number, one.device, one.sick) for one in found] == [
        ("v100", 0, "GPU-0", None),
        ("a100", 0, "GPU-1", None),
        ("v100", 1, "GPU-2", "XID 79"),
    ]
    assert found[0].description == "v100 0 (Tesla V100-SXM2-16GB, 16 GiB)"
    assert found[0].links == ("GPU-2",)
    assert described(found) == "2 v100, 1 a100"


def test_the_instances_of_a_gpu_that_is_cut_are_accelerators_of_their_own_types() -> None:
    parts = (MigInstance("MIG-a", "3g.20gb", 3, 20 * 2**30), MigInstance("MIG-b", "3g.20gb", 3, 20 * 2**30))
    found = accelerators_of(findings(Gpu("NVIDIA A100-SXM4-40GB", "GPU-0", mig=True, instances=parts)))
    assert [(one.type, one.number, one.device) for one in found] == [
        ("a100-3g.20gb", 0, "MIG-a"),
        ("a100-3g.20gb", 1, "MIG-b"),
    ]
    assert found[0].description == "a100-3g.20gb 0 (NVIDIA A100-SXM4-40GB MIG 3g.20gb, 20 GiB)"
    assert accelerators_of(findings(Gpu("NVIDIA A100-SXM4-40GB", "GPU-0", mig=True))) == [], "nothing can run on it"


def test_a_chip_with_the_memory_of_the_machine_says_so() -> None:
    (found,) = accelerators_of(findings(Gpu("NVIDIA GB10", "GPU-0", unified_memory=True)))
    assert found == Accelerator("gb10", 0, "GPU-0", "NVIDIA GB10", None, unified_memory=True, reading=found.reading)
    assert found.description == "gb10 0 (NVIDIA GB10, memory of the machine)"


def test_what_is_seen_again_keeps_its_number_what_is_gone_is_sick_and_what_is_new_comes_last() -> None:
    one, two, three = (Gpu("NVIDIA L4", f"GPU-{name}") for name in "abc")
    before = accelerators_of(findings(one, two))
    after = seen_again(before, findings(three, two))
    assert [(a.device, a.number, a.sick) for a in after] == [
        ("GPU-a", 0, GONE),
        ("GPU-b", 1, None),
        ("GPU-c", 2, None),
    ]
    assert [a.sick for a in seen_again(after, findings(one, two, three))] == [None, None, None]


def test_amds_library_is_asked_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here has ROCm: this is the interface as AMD documents it, with a value that a chip does not have."""

    class AmdSmiException(Exception):  # noqa: N818
        pass

    def refused(_: int) -> None:
        raise AmdSmiException("not supported")

    library = SimpleNamespace(
        AmdSmiException=AmdSmiException,
        AmdSmiMemoryType=SimpleNamespace(VRAM=0),
        amdsmi_init=lambda: None,
        amdsmi_shut_down=lambda: None,
        amdsmi_get_processor_handles=lambda: [11],
        amdsmi_get_gpu_asic_info=lambda _: {"market_name": "AMD Instinct MI300X"},
        amdsmi_get_gpu_activity=lambda _: {"gfx_activity": 40},
        amdsmi_get_power_info=lambda _: {"current_socket_power": "N/A", "average_socket_power": 250},
        amdsmi_get_gpu_total_ecc_count=refused,
        amdsmi_get_gpu_memory_total=lambda _handle, _kind: 192 * 2**30,
        amdsmi_get_gpu_memory_usage=lambda _handle, _kind: 2**30,
    )
    monkeypatch.setitem(sys.modules, "amdsmi", library)
    (gpu,) = AmdSmi().look().gpus
    assert (gpu.name, gpu.uuid, gpu.memory_bytes) == ("AMD Instinct MI300X", "0", 192 * 2**30)
    assert (gpu.reading.utilization, gpu.reading.power_watts, gpu.reading.ecc_errors) == (0.4, 250, None)
    (accelerator,) = accelerators_of(findings(gpu))
    assert (accelerator.type, accelerator.device) == ("mi300x", "0")
