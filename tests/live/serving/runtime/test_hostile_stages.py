"""Stages and models that do harm cost their own requests, and at most a restart; the others are served on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairway.errors import FairwayError
from fairway.live.serving.clients.client import ServingClient
from fairway.live.serving.clients.client_protocol import RequestFailedError
from fairway.live.serving.supervise.supervisor import Supervisor, tallies

_ROOT = Path(__file__).parents[4]
_APP = "tests.live.serving.hostile:ALL"


@contextmanager
def _served(directory: Path, **options: Any) -> Iterator[tuple[Supervisor, ServingClient]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(_ROOT), prepend=os.pathsep)
        patch.setenv("HOSTILE_DIRECTORY", str(directory))
        supervisor = Supervisor.of(_APP, directory=directory, workers=2, **options)
        with supervisor, ServingClient(directory) as client:
            yield supervisor, client


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Supervisor, ServingClient]]:
    with _served(
        tmp_path_factory.mktemp("hostile") / "served", stage_limit_seconds=1.0, load_limit_seconds=1.0
    ) as serving:
        yield serving


class _Others:
    """Another client, which asks for something harmless all the time."""

    def __init__(self, directory: Path) -> None:
        self.seconds: list[float] = []
        self.wrong: list[Any] = []
        self._directory = directory
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> _Others:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _ask(self) -> None:
        with ServingClient(self._directory) as client:
            while not self._over.wait(0.02):
                began = time.monotonic()
                try:
                    if client.ask("good", x=1, deadline_seconds=60.0) != 2:
                        self.wrong.append("another answer")
                except RequestFailedError as error:
                    self.wrong.append(error)
                self.seconds.append(time.monotonic() - began)


def _until(condition: Callable[[], Any], patience: float = 60.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.mark.parametrize("workflow", ["harmful", "inline"])
@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("silent", r"_SilentError: \(what it says cannot be read: its __str__ raised RuntimeError\)"),
        ("ending", r"_EndingError: \(what it says cannot be read: its __str__ raised SystemExit\)"),
        ("long", "_LongError: x{500} "),
        ("exit", "raised SystemExit"),
        ("interrupt", "raised KeyboardInterrupt"),
        ("generator-exit", "raised GeneratorExit"),
        ("surrogates", r"lone \\ud800 surrogate"),
        # By the worker that took the request, or by another one that it was placed on.
        ("unpicklable", "(the reply|what a stage put out) cannot be sent: pickling raised SystemExit"),
    ],
)
def test_whatever_a_stage_raises_fails_its_request_alone(
    served: tuple[Supervisor, ServingClient], workflow: str, what: str, reason: str
) -> None:
    supervisor, client = served
    before = supervisor.pids()
    with pytest.raises(RequestFailedError, match=reason) as failed:
        client.ask(workflow, what=what)
    assert failed.value.code == "failed"
    str(failed.value).encode()
    assert client.ask("good", x=1) == 2
    assert supervisor.pids() == before


def test_a_model_whose_load_raises_what_cannot_be_read_fails_its_request_alone(
    served: tuple[Supervisor, ServingClient],
) -> None:
    supervisor, client = served
    before = supervisor.pids()
    with pytest.raises(RequestFailedError, match="cannot be loaded: _SilentError"):
        client.ask("raising-load", text="x")
    assert supervisor.pids() == before


@pytest.mark.parametrize("workflow", ["harmful", "inline"])
def test_a_stage_that_forks_keeps_no_connection(served: tuple[Supervisor, ServingClient], workflow: str) -> None:
    supervisor, client = served
    before = supervisor.pids()
    assert client.ask(workflow, what="fork") == "forked"
    assert [client.ask("good", x=number) for number in range(20)] == list(range(1, 21))
    assert supervisor.pids() == before


def test_a_worker_whose_socket_is_removed_makes_it_anew(served: tuple[Supervisor, ServingClient]) -> None:
    supervisor, client = served
    before = supervisor.pids()
    assert client.ask("harmful", what="unlink") == "removed"
    _until(lambda: len(tallies(supervisor.settings)) == 2)
    assert supervisor.pids() == before


def test_a_stage_that_never_returns_is_refused_and_its_worker_replaced(
    served: tuple[Supervisor, ServingClient],
) -> None:
    supervisor, client = served
    with _Others(supervisor.settings.directory) as others:
        with pytest.raises(RequestFailedError, match="it took longer than 1 s, so it is not tried again"):
            client.ask("harmful", what="hang")
        with pytest.raises(RequestFailedError, match="it took longer than 1 s, so it is not tried again"):
            client.ask("harmful", what="hang")
    assert others.wrong == []
    _until(lambda: len(tallies(supervisor.settings)) == 2)


def test_requests_that_hang_in_all_workers_at_once_hold_the_others_up_for_the_limit_and_no_longer(
    tmp_path: Path,
) -> None:
    with _served(tmp_path / "served", stage_limit_seconds=1.0) as (supervisor, _):
        outcomes: list[str] = []

        def hang(number: int) -> None:
            with ServingClient(supervisor.settings.directory) as client:
                try:
                    client.ask("harmful", what=f"hang/{number}")
                except RequestFailedError as error:
                    outcomes.append(str(error))

        before = supervisor.pids()
        threads = [threading.Thread(target=hang, args=(number,)) for number in range(2)]
        with _Others(supervisor.settings.directory) as others:
            _until(lambda: others.seconds)
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            answered = len(others.seconds)
            _until(lambda: len(others.seconds) > answered + 1)
            _until(lambda: len(tallies(supervisor.settings)) == 2)
        assert len(outcomes) == 2
        assert all("it took longer than 1 s, so it is not tried again" in outcome for outcome in outcomes)
        assert others.wrong == []
        assert max(others.seconds) < 15.0, "the limit of 1 s, and the start of a new process on a busy machine"
        assert not set(before) & set(supervisor.pids()), "both workers were replaced"


def test_requests_of_one_client_that_hang_in_all_workers_hold_the_others_up_for_much_less_than_their_limit(
    tmp_path: Path,
) -> None:
    limit = 120.0
    outcomes: list[str] = []
    with _served(tmp_path / "served", stage_limit_seconds=limit) as (supervisor, client):
        for number in range(10):
            client.ask("harmful", what=f"nothing/{number}")

        def hang(number: int) -> None:
            with ServingClient(supervisor.settings.directory) as client:
                try:
                    client.ask("harmful", what=f"hang/{number}")
                except FairwayError as error:  # refused, or no longer served
                    outcomes.append(str(error))

        threads = [threading.Thread(target=hang, args=(number,)) for number in range(4)]
        with _Others(supervisor.settings.directory) as others:
            _until(lambda: others.seconds)
            for thread in threads:
                thread.start()
            # One that holds up no other, since these find room at the other worker, may take all of its limit.
            enough = time.monotonic() + limit / 3
            _until(lambda: len(outcomes) == 4 or time.monotonic() > enough, patience=limit)
            answered = len(others.seconds)
            _until(lambda: len(others.seconds) > answered + 1)
        assert all("took longer than usual while others waited" in outcome for outcome in outcomes), outcomes
        assert others.wrong == []
        assert max(others.seconds) < limit / 3, "a few times what is usual, and the starts of new processes"
    for thread in threads:
        thread.join()


def test_a_model_whose_load_hangs_is_set_aside_and_the_others_are_served(
    served: tuple[Supervisor, ServingClient],
) -> None:
    supervisor, client = served
    with (
        _Others(supervisor.settings.directory) as others,
        pytest.raises(
            RequestFailedError, match=r"model 'Loads.*took longer than 1 s again and again, so it is set aside"
        ),
    ):
        client.ask("hanging-load", text="x")
    assert others.wrong == []
    _until(lambda: len(tallies(supervisor.settings)) == 2)


def test_others_hardly_notice_requests_that_end_workers(tmp_path: Path) -> None:
    with _served(tmp_path / "served") as (supervisor, _):
        outcomes: list[str] = []

        def poison(number: int) -> None:
            with ServingClient(supervisor.settings.directory) as client:
                try:
                    client.ask("harmful", what=f"_exit/{number}")
                except RequestFailedError as error:
                    outcomes.append(str(error))

        threads = [threading.Thread(target=poison, args=(number,)) for number in range(1)]
        with _Others(supervisor.settings.directory) as others:
            for thread in threads:
                thread.start()
                time.sleep(1.0)
            for thread in threads:
                thread.join()
        assert others.wrong == []
        assert sorted(others.seconds)[int(0.99 * len(others.seconds))] < 2.0
        assert len(outcomes) == 1
        assert all("ended workers (status 7)" in outcome for outcome in outcomes)
