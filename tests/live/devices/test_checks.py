"""`fairway gpus` and `fairway gpus check`, on a stand-in for the driver, and the lines that they say."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fairway.live.devices import checks as module
from fairway.live.devices.checks import MPS_CONTROL, MPS_PIPES, Surroundings, Verdict, checked
from fairway.live.devices.gpus import ComputeMode, Findings, Gpu, MigInstance
from tests.live.devices.machine import A100, A100_PARTS, GB10, H100, L4, Machine


class Watch:
    """Has looked already."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.nvml = self
        self.trouble = None

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def look(self) -> Findings:
        return self.findings


def lines(
    monkeypatch: pytest.MonkeyPatch, root: Path, *gpus: Gpu, user: int = 0, driver: str = "580.1", **environment: str
) -> dict[str, tuple[Verdict, str]]:
    monkeypatch.setattr(module, "GpuWatch", lambda: Watch(Findings(gpus, driver=driver)))
    found, _ = checked(Surroundings({"PATH": str(root / "bin"), **environment}, root, user))
    return {one.name: (one.verdict, one.says) for one in found}


def system(root: Path) -> Path:
    """The files of a machine with a driver."""
    for name in ("proc/driver/nvidia/version", "proc/driver/nvidia/capabilities/mig/config", "dev/nvidiactl"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("NVRM version: NVIDIA UNIX 580.1\n")
    program = root / "bin" / MPS_CONTROL
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return root


def test_all_kinds_of_gpus_are_listed(machine: Machine) -> None:
    machine.has(A100, *A100_PARTS, H100.format(0, ""), L4, GB10)
    done = machine.fairway("gpus")
    assert done.returncode == 0, done.stderr
    for word in (
        "NVIDIA A100-SXM4-40GB",
        "MIG 3g.20gb",
        "MIG-two",
        "35 %",
        "612 W",
        "of the machine",
        "exclusive-process",
    ):
        assert word in done.stdout, done.stdout
    document = json.loads(machine.fairway("gpus", "--json", "-").stdout)
    assert [gpu["uuid"] for gpu in document["gpus"]] == ["GPU-a100", "GPU-h100-0", "GPU-l4", "GPU-gb10"]
    assert document["driver"] == "580.65.06"


def test_a_check_of_a_machine_without_a_driver_is_one_line_each_and_fails(machine: Machine) -> None:
    done = machine.fairway("gpus", "check")
    assert done.returncode == 1
    assert done.stderr == ""
    assert "broken  NVML: no GPU of NVIDIA: driver Not Loaded\n" in done.stdout


def test_a_check_names_the_gpu_that_cannot_be_used(machine: Machine) -> None:
    machine.has(f"{H100.format(0, '')}|rows=1".replace("|rows=0", ""), L4)
    done = machine.fairway("gpus", "check", "--json", "-")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    verdicts = {one["name"]: one["verdict"] for one in document["checks"]}
    assert verdicts["GPU 0"] == "broken"
    assert verdicts["GPU 1"] == "ok"
    assert verdicts["NVML"] == verdicts["driver"] == "ok"


def test_a_machine_that_has_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = system(tmp_path)
    pipes = tmp_path / "pipes"
    pipes.mkdir()
    (pipes / "control").touch()
    cut = Gpu("NVIDIA A100", "GPU-0", 2**30, mig=True, instances=(MigInstance("MIG-0", "7g.40gb"),))
    found = lines(monkeypatch, root, cut, user=os.getuid(), **{MPS_PIPES: str(pipes)})
    assert {verdict for verdict, _ in found.values()} == {Verdict.OK}, found
    assert found["MIG"][1] == "GPU 0 is cut: 7g.40gb"


@pytest.mark.parametrize(
    ("gpu", "driver", "name", "verdict", "says"),
    [
        (Gpu("A100", "GPU-0", mig=True), "580.1", "MIG", Verdict.BROKEN, "GPU 0 is in MIG mode and has no instance"),
        (Gpu("L4", "GPU-0"), "580.1", "MIG", Verdict.MISSING, "no GPU here can be cut"),
        (Gpu("K80", "GPU-0"), "418.40", "driver", Verdict.MISSING, "418.40 is too old to cut GPUs"),
        (Gpu("L4", "GPU-0", sick="XID 79"), "580.1", "GPU 0", Verdict.BROKEN, "L4: XID 79"),
        (
            Gpu("L4", "GPU-0", compute_mode=ComputeMode.PROHIBITED),
            "580.1",
            "GPU 0",
            Verdict.BROKEN,
            "its compute mode lets no process in",
        ),
        (Gpu("L4", "GPU-0"), "580.1", "MPS daemon", Verdict.MISSING, "none runs"),
    ],
)
def test_what_does_not_work_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gpu: Gpu, driver: str, name: str, verdict: Verdict, says: str
) -> None:
    found = lines(monkeypatch, system(tmp_path), gpu, driver=driver)
    assert found[name][0] is verdict
    assert says in found[name][1]


def test_a_bare_machine_has_no_device_files_and_no_mps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = lines(monkeypatch, tmp_path, Gpu("A100", "GPU-0", mig=False), user=12345)
    assert found["device files"][0] is Verdict.BROKEN
    assert found["MPS"] == (Verdict.MISSING, f"no {MPS_CONTROL} on PATH")
    assert found["MIG permissions"][0] is Verdict.MISSING


def test_a_daemon_of_another_user_is_not_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = system(tmp_path)
    (root / "tmp/nvidia-mps").mkdir(parents=True)
    (root / "tmp/nvidia-mps/control").touch()
    if os.getuid() == 0:
        os.chown(root / "tmp/nvidia-mps/control", 4242, 4242)
    found = lines(monkeypatch, root, Gpu("L4", "GPU-0"), user=os.getuid() + 1)
    assert found["MPS daemon"][0] is Verdict.MISSING
    assert "belongs to another user" in found["MPS daemon"][1]
