"""What a worker does with the requests of clients, from the door to the reply; its engine and its lines are lists."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairway.engine.serving.messages import Cancelled, Event, Refuse, RequestArrived
from fairway.live.serving.runtime.client_requests import ClientRequests
from fairway.live.serving.runtime.door import Door
from fairway.live.serving.runtime.request_values import RequestValues, Value
from fairway.live.serving.runtime.spans import Spans
from fairway.live.serving.runtime.tally import Tally
from fairway.live.serving.seams.run_record import mark_of
from fairway.live.serving.seams.values import Parcel
from fairway.live.serving.supervise.blame import HELD, SET_ASIDE, Notice

A, B = "client a", "client b"
NOTHING = Notice({}, frozenset(), frozenset(), suspects_run=True, culprits={}, aside=(), tries_at=0)


@dataclass
class Kept:
    """Values that are pickled; a buffer has a name, and is there until it is discarded."""

    gone: list[Parcel] = field(default_factory=list)
    missing: bool = False
    large: bool = False

    def open(self, parcel: Parcel) -> Any:
        if self.missing:
            raise OSError("no such buffer")
        return SimpleNamespace(parcel=parcel, value=lambda: pickle.loads(parcel.pickled))

    def pack(self, value: Any) -> Parcel:
        return Parcel(pickle.dumps(value), (f"buffer {value}",) if self.large else ())

    def is_there(self, parcel: Parcel) -> bool:
        return parcel not in self.gone

    def discard(self, parcel: Parcel) -> None:
        self.gone.append(parcel)


@dataclass
class Worker:
    """Worker 2 of an application with two workflows of one stage each; the second has an SLO of 0.5 s."""

    told: list[Event] = field(default_factory=list)
    sent: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    cleared: list[bytes] = field(default_factory=list)
    spans: list[tuple[Any, ...]] = field(default_factory=list)
    unreachable: set[str] = field(default_factory=set)
    clock: float = 100.0
    most_open: int = 3

    def __post_init__(self) -> None:
        def send(client: str, message: tuple[Any, ...]) -> bool:
            self.sent.append((client, message))
            return client not in self.unreachable

        def workflow(name: str, slo: float | None) -> Any:
            return SimpleNamespace(name=name, exits=[0], slo_seconds=slo, reply=lambda outputs: outputs[0])

        self.graphs = [object(), object()]
        workflows = dict(zip(self.graphs, [workflow("one", None), workflow("two", 0.5)], strict=True))
        spans = Spans()
        spans.began = lambda *given: self.spans.append(("began", *given))  # type: ignore[method-assign]
        spans.ended = lambda *given: self.spans.append(("ended", *given))  # type: ignore[method-assign]
        lane = SimpleNamespace(begin=lambda *_: None, end=lambda _: None)
        self.kept = Kept()
        self.values = RequestValues(cast(Any, self.kept), cast(Any, lane), lambda: self.clock)
        self.tally, self.door = Tally(), Door(2, [(), ()])
        self.door.heard(NOTHING)
        self.requests = ClientRequests(
            "worker 2", cast(Any, workflows), cast(Any, SimpleNamespace(send=send)), self.values, self.tally, spans,
            self.told.append, lambda: self.clock, self.door, self.cleared.append,
            number=2, first_key=10, most_open=self.most_open,
        )  # fmt: skip

    def ask(self, client: str, name: int, value: object = "x", workflow: int = 0, seconds: float | None = None,
            lost: int | None = None) -> bytes:  # fmt: skip
        parcel = Parcel(pickle.dumps(value))
        rest = () if lost is None else (lost,)
        self.requests.take(cast(Any, client), (name, workflow, tuple(parcel), seconds, "trace", *rest))
        return mark_of(workflow, parcel)

    def finish(self, key: int, value: object) -> None:
        self.values.keep_output(key, 0, Value(cast(Any, self.kept), value))
        self.requests.reply(key)

    def hear(self, **changes: Any) -> None:
        self.requests.heard(NOTHING._replace(**changes))

    @property
    def outcomes(self) -> list[tuple[int, str]]:
        return [(key, outcome) for _, key, outcome in (span for span in self.spans if span[0] == "ended")]


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_a_request_comes_in_with_its_deadline_and_when_it_is_due(worker: Worker) -> None:
    worker.ask(A, 1)
    worker.ask(A, 2, workflow=1)
    worker.ask(B, 1, workflow=1, seconds=0.25)
    one, two = worker.graphs
    assert worker.told == [
        RequestArrived(11, cast(Any, one), math.inf, math.inf),
        RequestArrived(12, cast(Any, two), math.inf, 100.5),
        RequestArrived(13, cast(Any, two), 100.25, 100.25),
    ]
    assert worker.tally.asked == len(worker.requests) == 3
    assert worker.spans[0] == ("began", 11, "one", "trace")


def test_a_request_without_an_slo_is_due_at_its_deadline(worker: Worker) -> None:
    worker.ask(A, 1, seconds=2.0)
    assert worker.told == [RequestArrived(11, cast(Any, worker.graphs[0]), 102.0, 102.0)]


def test_more_than_so_many_are_refused_until_one_is_over(worker: Worker) -> None:
    for name in range(4):
        worker.ask(A, name)
    assert len(worker.told) == len(worker.requests) == 3
    ((client, said),) = worker.sent
    assert (client, said[:3]) == (A, ("refused", 3, "busy"))
    assert "worker 2 has 3 requests already" in said[3]
    assert worker.tally.refused == {"busy": 1}
    worker.finish(11, "reply")
    worker.ask(A, 5)
    assert len(worker.told) == 4
    assert worker.tally.asked == 5


def test_an_input_that_is_gone_is_refused(worker: Worker) -> None:
    worker.kept.missing = True
    worker.ask(A, 1)
    assert worker.sent == [(A, ("refused", 1, "failed", "its input is not there: no such buffer"))]
    assert (worker.told, len(worker.requests)) == ([], 0)


def test_the_client_gets_the_reply_and_all_is_let_go(worker: Worker) -> None:
    worker.ask(A, 7, workflow=1)
    worker.clock = 100.5
    worker.finish(11, "the reply")
    ((client, said),) = worker.sent
    assert (client, said[:2], pickle.loads(said[2][0])) == (A, ("reply", 7), "the reply")
    assert (worker.tally.replied, worker.tally.in_time, worker.tally.late) == (1, 1, 0)
    assert worker.outcomes == [(11, "replied")]
    assert list(worker.tally.recent.requests) == [(11, 1, 100.0, 100.5, "replied")]
    assert len(worker.requests) == len(worker.values) == 0
    assert worker.values.is_over(11)
    worker.requests.reply(11)
    assert len(worker.sent) == 1


def test_a_reply_waits_for_what_comes_from_elsewhere(worker: Worker) -> None:
    worker.ask(A, 7)
    worker.requests.output_came(11)
    worker.requests.reply(11)
    assert worker.sent == []
    worker.values.keep_output(11, 0, Value(cast(Any, worker.kept), "late"))
    worker.requests.output_came(12)
    assert worker.sent == []
    worker.requests.output_came(11)
    assert [said[:2] for _, said in worker.sent] == [("reply", 7)]


def test_a_worker_that_is_lost_lets_a_reply_that_is_not_whole_begin_again(worker: Worker) -> None:
    worker.ask(A, 7)
    worker.ask(A, 8)
    worker.requests.reply(11)
    worker.requests.begin_again()
    assert [type(event) for event in worker.told] == [RequestArrived] * 3
    assert worker.outcomes == [(11, "again")]
    worker.finish(13, "now")
    assert [said[:2] for _, said in worker.sent] == [("reply", 7)]
    worker.requests.cancelled(cast(Any, A), 7)
    assert worker.tally.cancelled == 0


def test_a_reply_that_cannot_be_packed_is_a_failure(worker: Worker) -> None:
    worker.ask(A, 7)
    worker.kept.pack = lambda _: 1 / 0  # type: ignore[assignment,method-assign,return-value]
    worker.finish(11, "x")
    ((_, said),) = worker.sent
    assert said[:3] == ("refused", 7, "failed")
    assert "the reply cannot be sent: pickling raised ZeroDivisionError" in said[3]
    assert (worker.tally.replied, worker.tally.refused) == (0, {"failed": 1})


def test_a_refusal_goes_to_its_client_with_when_to_come_again(worker: Worker) -> None:
    worker.ask(A, 7)
    worker.requests.refuse(Refuse(11, "too much to do", "shed", 3.0))
    assert worker.sent == [(A, ("refused", 7, "shed", "too much to do", 3.0))]
    assert worker.outcomes == [(11, "shed")]
    assert worker.values.is_over(11)
    worker.requests.refuse(Refuse(99, "who", "shed"))
    assert len(worker.sent) == 1
    assert worker.tally.refused == {"shed": 2}


# Clients that leave


def test_a_client_cancels_its_own_request(worker: Worker) -> None:
    worker.ask(A, 7)
    worker.ask(B, 7)
    worker.requests.cancelled(cast(Any, A), 8)
    assert worker.tally.cancelled == 0
    worker.requests.cancelled(cast(Any, B), 7)
    assert worker.told[2:] == [Cancelled(12)]
    assert worker.outcomes == [(12, "cancelled")]
    assert (worker.tally.cancelled, len(worker.requests)) == (1, 1)
    assert worker.values.is_over(12)


def test_requests_of_a_client_that_is_gone_are_cancelled_and_what_it_has_not_opened_is_let_go(worker: Worker) -> None:
    worker.kept.large = True
    for client, name in ((A, 1), (B, 1), (A, 2)):
        worker.ask(client, name)
    worker.finish(11, "for a")
    worker.finish(12, "for b")
    assert worker.kept.gone == []
    worker.requests.client_left(cast(Any, A))
    assert worker.told[3:] == [Cancelled(13)]
    assert [parcel.names for parcel in worker.kept.gone] == [("buffer for a",)]
    worker.requests.client_left(cast(Any, A))
    assert len(worker.kept.gone) == 1


def test_what_cannot_be_sent_is_let_go_at_once(worker: Worker) -> None:
    worker.kept.large = True
    worker.unreachable.add(A)
    worker.ask(A, 1)
    worker.finish(11, "lost")
    assert [parcel.names for parcel in worker.kept.gone] == [("buffer lost",)]


def test_of_many_parcels_those_that_were_opened_are_forgotten(worker: Worker) -> None:
    worker.kept.large = True
    worker.kept.is_there = lambda parcel: "kept" in str(parcel.names)  # type: ignore[method-assign]
    for number in range(66):
        worker.ask(A, number)
        worker.finish(11 + number, "kept" if number == 3 else f"opened {number}")
    worker.requests.client_left(cast(Any, A))
    assert [parcel.names for parcel in worker.kept.gone] == [("buffer kept",), ("buffer opened 65",)]


def test_pieces_go_to_the_client_while_it_is_there(worker: Worker) -> None:
    worker.ask(A, 7)
    piece = Parcel(b"piece")
    worker.requests.piece_came(11, 3, piece)
    assert worker.sent == [(A, ("chunk", 7, 3, tuple(piece)))]
    worker.requests.piece_came(12, 0, piece)
    assert (len(worker.sent), worker.kept.gone) == (1, [piece])


# The door


def test_a_request_that_workers_died_of_is_refused(worker: Worker) -> None:
    mark = mark_of(0, Parcel(pickle.dumps("bad")))
    worker.hear(refused={mark: "workers died of it"})
    worker.ask(A, 7, "bad")
    assert worker.sent == [(A, ("refused", 7, "failed", "workers died of it", None))]
    assert worker.told == []
    worker.ask(A, 8)
    assert len(worker.told) == 1


def test_suspects_wait_until_they_may_run_and_are_cleared_by_their_reply(worker: Worker) -> None:
    mark = mark_of(0, Parcel(pickle.dumps("odd")))
    worker.hear(suspects=frozenset({mark}), suspects_run=False)
    worker.ask(A, 7, "odd")
    worker.ask(A, 8)
    assert [cast(RequestArrived, event).key for event in worker.told] == [12]
    worker.hear(suspects=frozenset({mark}))
    assert [cast(RequestArrived, event).key for event in worker.told] == [12, 11]
    worker.finish(12, "fine")
    assert worker.cleared == []
    worker.finish(11, "fine")
    assert worker.cleared == [mark]


def test_requests_that_run_are_called_back_when_they_become_suspects(worker: Worker) -> None:
    mark = worker.ask(A, 7, "odd")
    worker.ask(A, 8)
    worker.hear(suspects=frozenset({mark}), again=frozenset({mark}), suspects_run=False)
    assert worker.told[2:] == [Cancelled(11)]
    assert worker.outcomes == [(11, "again")]
    worker.hear(suspects=frozenset({mark}), again=frozenset({mark}), suspects_run=False)
    assert worker.told[2:] == [Cancelled(11)], "it waits already"
    worker.hear(suspects=frozenset({mark}))
    assert [cast(RequestArrived, event).key for event in worker.told[3:]] == [13]


@pytest.mark.parametrize(("state", "refused"), [(HELD, False), (SET_ASIDE, True)])
def test_a_workflow_that_is_held_waits_and_one_that_is_set_aside_is_refused(
    worker: Worker, state: str, refused: bool
) -> None:
    worker.hear(culprits={("workflow", 1): (state, "workers died of it")})
    worker.ask(A, 7, workflow=1)
    worker.ask(A, 8)
    assert [cast(RequestArrived, event).key for event in worker.told] == [12]
    assert bool(worker.sent) is refused
    worker.hear()
    assert len(worker.told) == (1 if refused else 2)


def test_what_waits_is_refused_when_its_workflow_is_set_aside(worker: Worker) -> None:
    worker.hear(culprits={("workflow", 0): (HELD, "")})
    worker.ask(A, 7)
    worker.hear(culprits={("workflow", 0): (SET_ASIDE, "workers died of it")})
    assert [said[:4] for _, said in worker.sent] == [("refused", 7, "unplaceable", "workers died of it")]


# Requests that were lost with a worker


def test_a_request_that_was_lost_with_a_worker_waits_for_word_of_it(worker: Worker) -> None:
    worker.ask(A, 7, lost=1)
    worker.ask(A, 8, lost=2)
    assert [cast(RequestArrived, event).key for event in worker.told] == [12], "this one is worker 2, and is here"
    worker.requests.time_passed()
    worker.requests.worker_lost(0)
    assert len(worker.told) == 1
    worker.requests.worker_lost(1)
    assert len(worker.told) == 2
    worker.ask(A, 9, lost=1)
    assert len(worker.told) == 3, "the word is here"
    worker.finish(11, "x")
    worker.requests.worker_joined(1)
    worker.ask(A, 10, lost=1)
    assert len(worker.told) == 3, "that was another life"


def test_a_request_waits_three_seconds_for_word(worker: Worker) -> None:
    worker.ask(A, 7, lost=1)
    worker.clock = 102.9
    worker.requests.time_passed()
    assert worker.told == []
    worker.clock = 103.0
    worker.requests.time_passed()
    assert len(worker.told) == 1


def test_a_request_that_waits_can_be_cancelled(worker: Worker) -> None:
    worker.ask(A, 7, lost=1)
    worker.requests.cancelled(cast(Any, A), 7)
    worker.clock = 200.0
    worker.requests.time_passed()
    assert [type(event) for event in worker.told] == [Cancelled]
