"""The supervisor's client of Ray, over a driver that is none: it is asked, dies, and is started again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from fairway.back_off import BackOff
from fairway.errors import InputError
from fairway.extras import missing
from fairway.live.serving.ray import ray_client
from fairway.live.serving.ray.ray_client import RayAwayError, RayClient, RayRefusedError

SECONDS = 30.0


@pytest.fixture(autouse=True)
def _driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_client, "_DRIVER", "tests.live.serving.ray.echoing_driver")
    monkeypatch.setattr(ray_client, "_BACK_OFF", BackOff(0.05, 0.05))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[4]))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def client() -> Iterator[RayClient]:
    made = RayClient("auto")
    yield made
    made.close()


def test_each_question_has_its_own_answer(client: RayClient) -> None:
    asked = [client.ask("echo", number) for number in range(20)]
    assert [each.result(SECONDS) for each in asked] == [(number,) for number in range(20)]
    with pytest.raises(RayRefusedError, match="no"):
        client.ask("refuse", "no").result(SECONDS)


def test_what_is_pending_fails_when_the_driver_dies_and_another_one_answers(client: RayClient) -> None:
    back = Event()
    client.came_back = back.set
    pending = client.ask("wait")
    client.ask("die")
    with pytest.raises(RayAwayError):
        pending.result(SECONDS)
    assert back.wait(SECONDS)
    assert client.is_there
    assert client.ask("echo", 7).result(SECONDS) == (7,)


def test_while_there_is_no_driver_nothing_waits_for_one(client: RayClient, tmp_path: Path) -> None:
    back = Event()
    client.came_back = back.set
    (tmp_path / "refuses").touch()
    gone = client.ask("die")
    with pytest.raises(RayAwayError):
        gone.result(SECONDS)
    assert not client.is_there
    with pytest.raises(RayAwayError):
        client.ask("echo", 1).result(0.0)
    (tmp_path / "refuses").unlink()
    assert back.wait(SECONDS)
    assert client.ask("echo", 2).result(SECONDS) == (2,)


def test_the_driver_ends_in_order_with_the_client(tmp_path: Path) -> None:
    client = RayClient("auto")
    pending = client.ask("wait")
    client.close()
    assert (tmp_path / "ended").exists()
    with pytest.raises(RayAwayError):
        pending.result(0.0)


def test_it_can_be_closed_while_there_is_no_driver(client: RayClient, tmp_path: Path) -> None:
    (tmp_path / "refuses").touch()
    with pytest.raises(RayAwayError):
        client.ask("die").result(SECONDS)
    client.close()
    assert not client.is_there


def test_a_ray_that_cannot_be_used_is_refused_with_what_its_driver_says(tmp_path: Path) -> None:
    (tmp_path / "refuses").touch()
    with pytest.raises(InputError, match="address: no Ray here"):
        RayClient("auto")


@pytest.mark.parametrize(("found", "is_old"), [("2.9.3", True), ("2.48.0", True), ("2.49.0", False), ("3.0.0", False)])
def test_a_ray_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch, found: str, is_old: bool) -> None:
    monkeypatch.setattr(ray_client, "version", lambda _: found)
    if is_old:
        with pytest.raises(InputError, match=rf"ray {found} is installed, expected 2\.49 or later"):
            RayClient("auto")
    else:
        RayClient("auto").close()


def test_without_ray_installed_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError) as caught:
        RayClient("auto")
    assert "its extra 'ray'" in str(missing(caught.value))
