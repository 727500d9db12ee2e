"""Models that have slices of a worker: each in a process of its own, which is held to its slice and dies alone."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairway.configure.slices.parts import Slice
from fairway.errors import InputError
from fairway.live.machine.containment import Containment
from fairway.live.serving.clients.client import ServingClient
from fairway.live.serving.clients.client_protocol import RequestFailedError
from fairway.live.serving.local.slices import LocalSlices
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.live.serving.supervise.supervisor import Supervisor, tallies

_ROOT = Path(__file__).parents[4]
SLICES = (
    ("small", Slice(250)), ("large", Slice(750)), ("greedy", Slice(500, 60_000_000)), ("speller", Slice(500)),
    ("unloadable", Slice(500)),
)  # fmt: skip

Served = tuple[Supervisor, ServingClient]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(_ROOT), prepend=os.pathsep)
        directory = tmp_path_factory.mktemp("sliced") / "served"
        supervisor = Supervisor.of(
            "tests.live.serving.sliced:ALL", directory=directory, workers=1, slices=SLICES,
        )  # fmt: skip
        with supervisor, ServingClient(directory) as client:
            yield supervisor, client
        left = [path for path in Containment.found(directory).parents if any(path.glob("worker-*"))]
        Containment.found(directory).discard()
        assert not left, "control groups of copies were left behind"


needs_groups = pytest.mark.skipif(
    not {"cpu", "memory"} <= Containment.enforced_here(),
    reason="control groups cannot be bounded here",
)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_model_with_a_slice_runs_in_a_process_of_its_own(served: Served) -> None:
    supervisor, client = served
    first = client.ask("both", seconds=0.001)
    assert (first[0], first[2]) == ("small", "large")
    assert len({first[1], first[3], *supervisor.pids()}) == 3
    assert first[4] in supervisor.pids(), "plain code runs in the worker"
    assert client.ask("small", seconds=0.001) == ["small", first[1]], "the copy is used again"


@needs_groups
def test_a_spinning_model_gets_its_part_of_a_cpu_and_no_more(served: Served) -> None:
    """However busy the machine is: a quota is a bound from above."""
    _, client = served
    _, pid = client.ask("small", seconds=0.001)
    used, began = _cpu_seconds(pid), time.monotonic()
    client.ask("small", seconds=0.25)
    used, seconds = _cpu_seconds(pid) - used, time.monotonic() - began
    assert used >= 0.2, "it has spun for a quarter of a second"
    assert used <= 0.25 * seconds * 1.1 + 0.03, f"{used} s of CPU time in {seconds} s"


def test_several_copies_run_at_once_as_far_as_there_is_room(served: Served) -> None:
    _, client = served
    pids = []
    threads = [
        threading.Thread(target=lambda: pids.append(client.ask("small", seconds=0.05)[1])) for _ in range(2)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(pids)) == 2


@needs_groups
def test_a_model_that_allocates_without_end_dies_alone(served: Served) -> None:
    supervisor, client = served
    neighbour = client.ask("large", seconds=0.001)
    with pytest.raises(RequestFailedError, match=r"needed more memory than the 60 MB of its slice.*tried 2 times"):
        client.ask("greedy", wish="all")
    assert client.ask("large", seconds=0.001) == neighbour, "the neighbour's process has not noticed"
    assert supervisor.restarts == 0
    assert client.ask("greedy", wish="nothing")[0] == "greedy", "it is started again"


def test_a_model_whose_process_ends_is_started_again(served: Served) -> None:
    supervisor, client = served
    _, pid = client.ask("greedy", wish="nothing")
    with pytest.raises(RequestFailedError, match=r"process of model 'greedy' was ended without a word"):
        client.ask("greedy", wish="die")
    assert client.ask("greedy", wish="nothing")[1] != pid
    assert supervisor.restarts == 0


@pytest.mark.parametrize(
    ("wish", "words"), [("raise", "RuntimeError: no luck"), ("unsendable", "cannot go to another")]
)
def test_what_a_stage_raises_in_its_slice_is_answered(served: Served, wish: str, words: str) -> None:
    _, client = served
    _, pid = client.ask("greedy", wish="nothing")
    with pytest.raises(RequestFailedError, match=words):
        client.ask("greedy", wish=wish)
    assert client.ask("greedy", wish="nothing")[1] == pid, "its process lives on"


def test_a_model_that_cannot_be_loaded_is_refused_with_the_reason(served: Served) -> None:
    _, client = served
    with pytest.raises(RequestFailedError, match="OSError: no such file"):
        client.ask("unloadable", word="x")


def test_pieces_come_from_a_slice_one_by_one(served: Served) -> None:
    _, client = served
    assert list(client.stream("spelling", word="ab")) == ["a", "b", "!"]
    with pytest.raises(RequestFailedError, match="no more"):
        list(client.stream("spelling", word="bad"))
    pieces = client.stream("spelling", word="abcdef")
    assert next(pieces) == "a"
    pieces.close()  # type: ignore[attr-defined]
    assert list(client.stream("spelling", word="xy")) == ["x", "y", "!"], "one that was left does not hold the next up"


def test_the_tally_says_what_is_not_enforced(served: Served) -> None:
    supervisor, _ = served
    said = [tally["not_enforced"] for tally in tallies(supervisor.settings).values()]
    assert said == [[]] if {"cpu", "memory"} <= Containment.enforced_here() else said[0]


def test_a_machine_without_control_groups_says_so(tmp_path: Path) -> None:
    slices = LocalSlices(ServingSettings("x", tmp_path, tmp_path), 0)
    slices._containment = Containment(enforced=frozenset({"memory"}))
    (said,) = slices.not_enforced
    assert "not enforced in CPU time" in said
    slices._containment = Containment(enforced=frozenset())
    assert "CPU time and memory" in slices.not_enforced[0]


def test_a_gpu_without_mps_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = ServingSettings("x", tmp_path, tmp_path, workers=1, devices=("GPU-1",))
    slices = LocalSlices(settings, 0)
    assert slices._on_device(Slice(500)) == {}
    assert any("nvidia-cuda-mps-control" in said for said in slices.not_enforced)
    other = LocalSlices(ServingSettings("x", tmp_path, tmp_path, workers=1, devices=("0000:01",)), 0)
    assert other._on_device(Slice(500)) == {}
    assert any("no GPU of NVIDIA" in said for said in other.not_enforced)


@pytest.mark.parametrize(
    ("slices", "memory", "words"),
    [
        ((("smal", Slice(250)),), None, "no model 'smal'"),
        ((("small", Slice(2000)),), None, "small: 2 of a worker given"),
        ((("small", Slice(250, 500_000)),), None, "0.5 MB given, but the model alone needs 1 MB"),
        ((("small", Slice(250, 10_000_000)),), 5e6, "10 MB given, but a worker has 5 MB"),
    ],
)
def test_slices_that_cannot_be_are_refused(
    slices: Any, memory: float | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(_ROOT)
    supervisor = Supervisor.of("tests.live.serving.sliced:small", slices=slices, memory_bytes=memory)
    with pytest.raises(InputError, match=words):
        supervisor.start()


def test_settings_with_slices_are_read_as_they_were_written(tmp_path: Path) -> None:
    settings = ServingSettings("x", tmp_path, tmp_path, slices=SLICES)
    settings.save(tmp_path / "settings.json")
    assert ServingSettings.read(tmp_path / "settings.json") == settings
