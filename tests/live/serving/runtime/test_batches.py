"""Requests that wait for the same stage run together on real workers."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairway.live.serving.application.definition import load_application
from fairway.live.serving.clients.async_client import AsyncServingClient
from fairway.live.serving.clients.client_protocol import RequestFailedError
from fairway.live.serving.runtime.batch_run import run_batch
from fairway.live.serving.supervise.supervisor import Supervisor, tallies
from fairway.workflows import Arguments

_ROOT = Path(__file__).parents[4]
_APP = "tests.live.serving.batched"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    monkeypatch.setenv("PYTHONPATH", str(_ROOT), prepend=os.pathsep)

    @contextmanager
    def serve(name: str, **options: Any) -> Iterator[Supervisor]:
        with Supervisor.of(f"{_APP}:{name}", directory=tmp_path / "served", **options) as supervisor:
            yield supervisor

    return serve


def asked_at_once(supervisor: Supervisor, numbers: range) -> list[Any]:
    """The answer to each, or what was raised."""

    async def ask() -> list[Any]:
        client = AsyncServingClient(supervisor.settings.directory)
        try:
            return await asyncio.gather(*(client.ask(x=number) for number in numbers), return_exceptions=True)
        finally:
            await client.close()

    return asyncio.run(ask())


def batch_sizes(supervisor: Supervisor) -> dict[int, int]:
    counted: dict[int, int] = {}
    for tally in tallies(supervisor.settings).values():
        for size, count in tally["batch"].items():
            counted[int(size)] = counted.get(int(size), 0) + count
    return counted


def test_concurrent_requests_run_together_and_each_gets_its_own_answer(served: Callable[..., Any]) -> None:
    with served("counting", workers=1) as supervisor:
        answers = asked_at_once(supervisor, range(32))
        assert [answer[0] for answer in answers] == list(range(32))
        first, second = ([answer[1] for answer in answers], [answer[2] - answer[0] for answer in answers])
        assert max(first) > 1
        assert max(second) > 1
        assert max(*first, *second) <= 8, "no more than was measured"
        counted = batch_sizes(supervisor)
        assert sum(size * count for size, count in counted.items()) == 64
        assert max(counted) == max(*first, *second)
        (tally,) = tallies(supervisor.settings).values()
        assert sum(sum(waits["counts"]) for waits in tally["wait"].values()) == 64, "each has waited for itself"


@pytest.mark.parametrize(("name", "options"), [("counting", {"scheduler": "compass:no-batching"}), ("hurried", {})])
def test_an_option_or_the_slo_keeps_batches_small(
    served: Callable[..., Any], name: str, options: dict[str, Any]
) -> None:
    with served(name, workers=1, **options) as supervisor:
        answers = asked_at_once(supervisor, range(24))
        largest = max(answer[1] for answer in answers)
        assert largest == (1 if options else 2), "within 25 ms, two run together, and not four"
        assert max(batch_sizes(supervisor)) == largest


def test_a_member_that_raises_fails_alone(served: Callable[..., Any]) -> None:
    with served("choosing", workers=1) as supervisor:
        before = supervisor.pids()
        answers = asked_at_once(supervisor, range(32))
        for number, answer in enumerate(answers):
            if number % 5 == 0:
                assert isinstance(answer, RequestFailedError)
                assert f"stage 'Choose' raised ValueError: no fives, please: [{number}] " in str(answer)
            else:
                assert answer[0] == number
        assert max(batch_sizes(supervisor)) > 1
        (tally,) = tallies(supervisor.settings).values()
        assert tally["failures"] == 7
        assert supervisor.pids() == before


def test_members_of_batches_survive_the_death_of_workers(served: Callable[..., Any]) -> None:
    with served("counting", workers=3) as supervisor:
        answers: list[Any] = []
        client = threading.Thread(target=lambda: answers.extend(asked_at_once(supervisor, range(600))))
        client.start()
        for number in range(2):
            client.join(0.4)
            assert client.is_alive(), "they take longer, even in the largest batches"
            os.kill(supervisor.pids()[number], signal.SIGKILL)
        client.join(120)
        assert not client.is_alive()
        assert [answer[0] for answer in answers] == list(range(600))
        assert max(batch_sizes(supervisor)) > 1


def test_what_a_batch_puts_out_is_told_apart() -> None:
    workflow = load_application(f"{_APP}:choosing").workflows["choosing"]

    def missing() -> Arguments:
        raise OSError("its input is gone")

    members: list[Callable[[], Arguments]] = [
        lambda: Arguments((1,)),
        missing,
        lambda: Arguments((5,)),
        lambda: Arguments((7,)),
    ]
    fine, gone, refused, also_fine = run_batch(workflow, 0, None, members)
    assert (fine.value, also_fine.value) == ((1, 1), (7, 1)), "they ran one by one after all"
    assert "raised OSError: its input is gone" in (gone.problem or "")
    assert "raised ValueError" in (refused.problem or "")
    assert [outcome.value for outcome in run_batch(workflow, 0, None, [members[0], members[3]])] == [(1, 2), (7, 2)]
    (alone,) = run_batch(workflow, 0, None, [missing])
    assert "raised OSError" in (alone.problem or "")


def test_a_suspect_runs_after_the_others_and_alone() -> None:
    workflow = load_application(f"{_APP}:choosing").workflows["choosing"]
    members = [lambda number=number: Arguments((number,)) for number in (1, 7, 9)]
    began: list[tuple[int, ...]] = []
    outcomes = run_batch(workflow, 0, None, members, lambda positions: began.append(tuple(positions)), [1])
    assert [outcome.value for outcome in outcomes] == [(1, 2), (7, 1), (9, 2)]
    assert began[-2:] == [(0, 2), (1,)]
