"""Ranks that are on several nodes agree as those of one machine do, and no stranger takes part."""

from __future__ import annotations

import itertools
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.live.job.gang import Gang, agree, cells_of
from fairway.live.job.remote_gang import CHALLENGE_BYTES, PROOF, QUESTION, GangApartError, RemoteGang, proof_of
from fairway.live.local.agent.agreement_server import AgreementServer

SECRET = "0123456789abcdef" * 2


@contextmanager
def server(ranks: int) -> Iterator[str]:
    """A server that serves in a thread, as a keeper does while it waits; where it is."""
    one = AgreementServer("127.0.0.1", 0, SECRET, ranks)
    reader, writer = os.pipe()
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            one.serve(10.0, until=reader)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{one.port}"
    finally:
        over.set()
        os.write(writer, b".")
        thread.join()
        one.close()
        os.close(reader)
        os.close(writer)


def run_of(gang: RemoteGang, most: int, *, stop_at: int | None) -> tuple[int, list[int]]:
    """Do steps until all are to stop: how many, and after which it has saved."""
    done, saved = 0, []
    while done < most:
        stop = stop_at is not None and done >= stop_at
        match gang.next(done, stop=stop, save=stop_at is not None and done in {stop_at - 40, stop_at - 20}):
            case "stop":  # where a job saves as well
                saved += [done] if done not in saved else []
                break
            case "save":
                saved.append(done)
            case "step":
                done += 1
    gang.close()
    return done, saved


def test_ranks_over_the_network_save_and_stop_after_the_same_steps() -> None:
    with server(3) as where:
        ended: dict[int, tuple[int, list[int]]] = {}

        def rank(number: int) -> None:
            gang = RemoteGang(where, SECRET, number)
            ended[number] = run_of(gang, 10**6, stop_at=200 if number == 1 else None)

        threads = [threading.Thread(target=rank, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len({steps for steps, _ in ended.values()}) == 1
    assert ended[1][0] >= 200
    assert len({tuple(saved) for _, saved in ended.values()}) == 1
    assert ended[1][1], "it has saved at least once"


def test_fast_steps_do_not_each_wait_for_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    plain = RemoteGang._answer_to

    def counted(self: RemoteGang, question: bytes) -> bytes:
        nonlocal asked
        asked += 1
        return plain(self, question)

    monkeypatch.setattr(RemoteGang, "_answer_to", counted)
    with server(2) as where:
        gang = RemoteGang(where, SECRET, 0)
        for done in range(5000):
            assert gang.next(done, stop=False, save=False) == "step"
        gang.close()
    assert asked < 1000


def proven(challenge: bytes) -> bytes:
    return PROOF.pack(proof_of(SECRET, challenge), 0)


STRANGERS: dict[str, Callable[[bytes], bytes]] = {
    "another secret": lambda challenge: PROOF.pack(proof_of("another secret of that length", challenge), 0),
    "no such rank": lambda challenge: PROOF.pack(proof_of(SECRET, challenge), 7),
    "asks as another": lambda challenge: proven(challenge) + QUESTION.pack(0, 1, 0, 1),
    "no step": lambda challenge: proven(challenge) + QUESTION.pack(-1, 1, 0, 0),
}


@pytest.mark.parametrize("who", STRANGERS)
def test_a_stranger_is_not_answered_and_changes_nothing(who: str) -> None:
    with server(2) as where:
        host, _, port = where.partition(":")
        with socket.create_connection((host, int(port)), 10) as stranger:
            challenge = stranger.recv(CHALLENGE_BYTES)
            stranger.sendall(STRANGERS[who](challenge))
            assert stranger.recv(100) == b""
        gang = RemoteGang(where, SECRET, 0)
        assert gang.next(0, stop=False, save=False) == "step"
        gang.close()


def test_the_server_is_needed_until_the_last_rank_has_gone() -> None:
    one = AgreementServer("127.0.0.1", 0, SECRET, 2)
    reader, writer = os.pipe()
    ranks = [RemoteGang(f"127.0.0.1:{one.port}", SECRET, number) for number in range(2)]
    needed = [one.is_needed]
    for gang in ranks:
        asking = threading.Thread(target=gang.next, args=(0,), kwargs={"stop": False, "save": False})
        asking.start()
        while asking.is_alive():
            one.serve(0.02, until=reader)
        needed.append(one.is_needed)
    for gang in ranks:
        gang.close()
        one.serve(0.2, until=reader)
        needed.append(one.is_needed)
    assert needed == [False, True, True, True, False]
    one.close()
    for end in (reader, writer):
        os.close(end)


def test_a_rank_that_is_cut_off_ends_with_what_is_wrong() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(GangApartError, match=f"rank 1 has not reached its gang at 127.0.0.1:{port}"):
        RemoteGang(f"127.0.0.1:{port}", SECRET, 1, patience=0.2).next(0, stop=False, save=False)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), ranks=st.integers(2, 4))
def test_no_rank_passes_the_step_that_all_stop_at_however_far_ahead_it_writes(data: st.DataObject, ranks: int) -> None:
    cells, done, until = [0] * cells_of(ranks), [0] * ranks, [0] * ranks
    saved: list[list[int]] = [[] for _ in range(ranks)]
    stopped: dict[int, int] = {}
    for turn in itertools.count():
        late = turn > 150
        rank = turn % ranks if late else data.draw(st.integers(0, ranks - 1))
        if rank in stopped:
            if len(stopped) == ranks:
                break
            continue
        wishes = (late, False) if late else data.draw(st.tuples(st.booleans(), st.booleans()), label="stop, save")
        wishes = (wishes[0] and turn > 60, wishes[1])
        if done[rank] < until[rank] and not any(wishes):
            done[rank] += 1
            continue
        ahead = data.draw(st.integers(1, 9)) if not late else 3
        deed, until[rank] = agree(cells, ranks, rank, done[rank], stop=wishes[0], save=wishes[1], ahead=ahead)
        if deed == "stop":
            stopped[rank] = done[rank]
            saved[rank] += [done[rank]] if done[rank] not in saved[rank] else []
        elif deed == "save":
            saved[rank].append(done[rank])
        else:
            done[rank] += 1
    assert len(set(stopped.values())) == 1
    assert all(each == saved[0] for each in saved)


def test_on_one_machine_the_same_rule_holds(tmp_path: Path) -> None:
    one, other = (Gang(tmp_path / "gang", rank, 2) for rank in range(2))
    assert one.next(0, stop=False, save=False) == "step"
    assert other.next(0, stop=True, save=False) == "step"
    assert other.next(1, stop=True, save=False) == "stop"
    assert one.next(1, stop=False, save=False) == "stop"
