"""The conformance kit of transports: what must hold between workers, and between workers and their callers.

`check_transport` runs every check of `CHECKS`, each on a network of its own, with several workers and lines in this one
process. A failure names the check and what happened.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from fairway.live.serving.seams.conformance import PATIENCE_SECONDS, SeamError, fail, require, require_equal
from fairway.live.serving.seams.transport import Arrival, Line, Message, Network, Transport

T = TypeVar("T")

_STEP_SECONDS = 0.005
_LARGE = 8 << 20
"""Bytes of a message that no buffer between two processes takes at once."""


def check_transport(make: Callable[[], Network]) -> None:
    """Raise `SeamError` unless networks that `make` makes pass every check."""
    for check in CHECKS:
        trial = Trial(make())
        try:
            check(trial)
        except SeamError:
            raise
        except Exception as error:
            message = f"check '{check.__name__}' fails: raises {type(error).__name__}: {error}"
            raise SeamError(message) from error
        finally:
            trial.close()


class Trial:
    """A network with workers and lines, all driven from here."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._workers: dict[Transport, list[Arrival]] = {}
        self._lines: dict[Line, list[Message | None]] = {}

    def worker(self, number: int) -> Transport:
        """A worker that listens."""
        transport = self.network.transport(number)
        transport.listen()
        self._workers[transport] = []
        return transport

    def line(self, number: int) -> Line:
        """A line to a worker."""
        line = self.network.connect(number)
        self._lines[line] = []
        return line

    def dies(self, worker: Transport) -> None:
        """The process of a worker is no more."""
        del self._workers[worker]
        worker.close()

    def hung_up(self, line: Line) -> None:
        """The other end of a line has left."""
        del self._lines[line]
        line.close()

    def arrivals(self, worker: Transport, count: int) -> list[Arrival]:
        """The next arrivals at a worker: so many, or fewer if they do not come; with 0, those that have come."""
        return self._taken(self._workers[worker], count)

    def messages(self, worker: Transport, count: int) -> list[Message | None]:
        """The same without their senders."""
        return [arrival.message for arrival in self.arrivals(worker, count)]

    def heard(self, line: Line, count: int) -> list[Message | None]:
        """What has come over a line, so many messages; None is the end of it."""
        return self._taken(self._lines[line], count)

    def rest(self) -> None:
        """Let time pass, in which all that is under way arrives."""
        end = self.network.now() + 0.2
        self._until(lambda: self.network.now() >= end)

    def close(self) -> None:
        """End everything."""
        for line in self._lines:
            line.close()
        for worker in self._workers:
            worker.close()

    def _taken(self, came: list[T], count: int) -> list[T]:
        self._until(lambda: len(came) >= count)
        found = came[: count or len(came)]
        del came[: len(found)]
        return found

    def _until(self, condition: Callable[[], bool]) -> None:
        end = self.network.now() + PATIENCE_SECONDS
        while not condition() and self.network.now() < end:
            for line, heard in self._lines.items():
                if None in heard:
                    continue
                with suppress(OSError):
                    line.flush()
                messages = line.receive()
                heard.extend([None] if messages is None else messages)
            for worker, arrived in self._workers.items():
                arrived.extend(worker.receive(_STEP_SECONDS))


def messages_arrive_as_they_were_sent(trial: Trial) -> None:
    """What is sent arrives, with all of its parts, from workers and from callers, and answers come back."""
    here = messages_arrive_as_they_were_sent
    one, two = trial.worker(0), trial.worker(1)
    parts: Message = ("all", None, True, 7, 2.5, float("inf"), "word", b"\0\xff", (1, (2, ())), {"a": [1, {"b": 2}]})
    require(here, one.send(1, parts), "a worker that listens is taken for gone")
    require_equal(here, trial.messages(two, 1), [parts], "from a worker came")
    line = trial.line(1)
    line.send(parts)
    for sender, message in trial.arrivals(two, 1):
        require_equal(here, message, parts, "from a caller came")
        two.send(sender, ("answer", parts))
    require_equal(here, trial.heard(line, 1), [("answer", parts)], "as an answer came")


def what_arrives_is_a_copy(trial: Trial) -> None:
    """What a sender does to a message after sending it changes nothing."""
    target, line = trial.worker(0), trial.line(0)
    content = ["before"]
    line.send(("n", content))
    content[0] = "after"
    require_equal(what_arrives_is_a_copy, trial.messages(target, 1), [("n", ["before"])], "came")


def order_is_kept_and_nothing_is_doubled(trial: Trial) -> None:
    """Between two ends, messages arrive in the order of their sending, each of them once."""
    target = trial.worker(0)
    sends: list[Callable[[Message], bool]] = [
        *(partial(trial.worker(number).send, 0) for number in (1, 2)),
        *(trial.line(0).send for _ in range(2)),
    ]
    count = 200
    for number in range(count):
        for name, send in enumerate(sends):
            send(("n", name, number, b"x" * (number % 7 * 1000)))
    came: dict[int, list[int]] = {name: [] for name in range(len(sends))}
    for message in trial.messages(target, count * len(sends)):
        if message is not None:
            came[message[1]].append(message[2])
    expected = {name: list(range(count)) for name in came}
    require_equal(order_is_kept_and_nothing_is_doubled, came, expected, "by sender came")
    trial.rest()
    require_equal(order_is_kept_and_nothing_is_doubled, trial.messages(target, 0), [], "more came")


def large_messages_arrive_and_hold_nothing_up(trial: Trial) -> None:
    """Sending what no buffer takes does not wait, and what is sent after it comes after it."""
    here = large_messages_arrive_and_hold_nothing_up
    one, two = trial.worker(0), trial.worker(1)
    line = trial.line(1)
    large = bytes(range(256)) * (_LARGE // 256)
    began = trial.network.now()
    one.send(1, ("large", large))
    one.send(1, ("small", "from a worker"))
    line.send(("large", large))
    line.send(("small", "from a caller"))
    require(here, trial.network.now() - began < PATIENCE_SECONDS / 2, "sending waited for the other end")
    arrived = trial.arrivals(two, 4)
    senders = dict.fromkeys(sender for sender, _ in arrived)
    require_equal(here, len(senders), 2, "senders")
    for sender in senders:
        words = [message[0] for each, message in arrived if each == sender and message is not None]
        require_equal(here, words, ["large", "small"], "from one sender came")
    changed = [message for _, message in arrived if message and message[0] == "large" and message[1] != large]
    require(here, not changed, "bytes have changed")
    two.send(next(sender for sender, message in arrived if message == ("small", "from a caller")), ("large", large))
    require_equal(here, trial.heard(line, 1), [("large", large)], "back came")


def an_answer_goes_to_its_caller_alone(trial: Trial) -> None:
    """What a worker sends to one of its callers no other one hears."""
    here = an_answer_goes_to_its_caller_alone
    worker = trial.worker(0)
    lines = [trial.line(0) for _ in range(3)]
    for name, line in enumerate(lines):
        line.send(("call", name))
    for sender, message in trial.arrivals(worker, len(lines)):
        assert message is not None
        worker.send(sender, ("answer", message[1]))
    trial.rest()
    for name, line in enumerate(lines):
        require_equal(here, trial.heard(line, 1), [("answer", name)], f"caller {name} heard")
        require_equal(here, trial.heard(line, 0), [], f"caller {name} heard more")


def a_caller_that_leaves_is_noticed_once(trial: Trial) -> None:
    """After all that it has said comes one arrival that says that it is gone; sending to it is no error."""
    here = a_caller_that_leaves_is_noticed_once
    worker, line, other = trial.worker(0), trial.line(0), trial.line(0)
    line.send(("last", 1))
    line.send(("last", 2))
    trial.hung_up(line)
    arrived = trial.arrivals(worker, 3)
    require_equal(here, [message for _, message in arrived], [("last", 1), ("last", 2), None], "came")
    require_equal(here, len({sender for sender, _ in arrived}), 1, "senders")
    require(here, not worker.send(arrived[0].sender, ("late",)), "a message to it counts as sent")
    trial.rest()
    require_equal(here, trial.messages(worker, 0), [], "more came")
    other.send(("still", "there"))
    require_equal(here, trial.messages(worker, 1), [("still", "there")], "from another caller came")


def a_worker_that_dies_is_noticed(trial: Trial) -> None:
    """Its callers hear the end of their lines, other workers that it is gone, once; sending to it is no error."""
    here = a_worker_that_dies_is_noticed
    one, two, line = trial.worker(0), trial.worker(1), trial.line(1)
    one.send(1, ("n",))
    line.send(("n",))
    require_equal(here, trial.messages(two, 2), [("n",), ("n",)], "before its death came")
    trial.dies(two)
    require_equal(here, trial.heard(line, 1), [None], "over a line to it came")
    require_equal(here, trial.arrivals(one, 1), [Arrival(1, None)], "at another worker came")
    require(here, not one.send(1, ("late",)), "a message to it counts as sent")
    trial.rest()
    require_equal(here, trial.arrivals(one, 0), [], "at another worker came more")
    with suppress(OSError):
        trial.line(1)
        fail(here, "a dead worker can be called")


def a_new_worker_takes_its_place(trial: Trial) -> None:
    """A worker that is started again under the number of a dead one is reached by it, and gets nothing of before."""
    here = a_new_worker_takes_its_place
    one, two = trial.worker(0), trial.worker(1)
    one.send(1, ("before",))
    trial.messages(two, 1)
    one.send(1, ("lost",))
    trial.dies(two)
    one.hang_up(1)
    trial.rest()
    new = trial.worker(1)
    require(here, one.send(1, ("after",)), "the new worker is taken for gone")
    trial.line(1).send(("after",))
    require_equal(here, trial.messages(new, 2), [("after",), ("after",)], "at the new worker came")


def nonsense_costs_its_sender_alone(trial: Trial) -> None:
    """A caller that sends what is no message loses its connection, and no other one does."""
    here = nonsense_costs_its_sender_alone
    worker, other = trial.worker(0), trial.line(0)
    for nonsense in (7, (), ["a", "list"]):
        line = trial.line(0)
        line.send(nonsense)  # type: ignore[arg-type]
        require_equal(here, trial.heard(line, 1), [None], f"after {nonsense!r} came back")
        require_equal(here, trial.messages(worker, 1), [None], f"of {nonsense!r} came")
    other.send(("still", "there"))
    require_equal(here, trial.messages(worker, 1), [("still", "there")], "from another caller came")


def hanging_up_ends_a_connection(trial: Trial) -> None:
    """A caller that a worker lets go hears the end of its line, and the worker nothing more of it."""
    here = hanging_up_ends_a_connection
    worker, line = trial.worker(0), trial.line(0)
    line.send(("call",))
    for sender, _ in trial.arrivals(worker, 1):
        worker.hang_up(sender)
        require(here, not worker.send(sender, ("late",)), "a message to it counts as sent")
    require_equal(here, trial.heard(line, 1), [None], "over the line came")
    trial.rest()
    require_equal(here, trial.messages(worker, 0), [], "at the worker came")


def waits_end(trial: Trial) -> None:
    """A wait ends when its time is over, when something comes, and when the worker is woken, also just before."""
    now, worker = trial.network.now, trial.worker(0)
    began = now()
    require_equal(waits_end, list(worker.receive(0.05)), [], "came")
    require(waits_end, 0.04 <= now() - began < PATIENCE_SECONDS, f"0.05 s took {now() - began} s")
    worker.wake()
    began = now()
    require_equal(waits_end, list(worker.receive(PATIENCE_SECONDS)), [], "came")
    require(waits_end, now() - began < PATIENCE_SECONDS / 2, "a wait did not end when the worker was woken")
    line = trial.line(0)
    line.send(("first",))  # a connection may take a few words between its two ends before it carries messages
    require_equal(waits_end, trial.messages(worker, 1), [("first",)], "at first came")
    line.send(("call",))
    began = now()
    while not (came := worker.receive(PATIENCE_SECONDS)):
        require(waits_end, now() - began < PATIENCE_SECONDS, "a wait did not end when a message came")
    worker.send(came[0].sender, ("answer",))
    require_equal(waits_end, line.receive(PATIENCE_SECONDS), [("answer",)], "over a line came")
    began = now()
    require_equal(waits_end, line.receive(0.05), [], "over a line came")
    require(waits_end, 0.04 <= now() - began < PATIENCE_SECONDS, f"0.05 s at a line took {now() - began} s")


def a_worker_that_is_not_there_cannot_be_reached(trial: Trial) -> None:
    """Calling it raises `OSError`, and a message to it counts as not sent."""
    here = a_worker_that_is_not_there_cannot_be_reached
    worker = trial.worker(0)
    require(here, not worker.send(1, ("n",)), "a message to it counts as sent")
    silent = trial.network.transport(2)  # it does not listen yet
    for number in (1, 2):
        with suppress(OSError):
            trial.line(number)
            fail(here, f"worker {number} can be called")
    silent.close()


CHECKS: tuple[Callable[[Trial], None], ...] = (
    messages_arrive_as_they_were_sent,
    what_arrives_is_a_copy,
    order_is_kept_and_nothing_is_doubled,
    large_messages_arrive_and_hold_nothing_up,
    an_answer_goes_to_its_caller_alone,
    a_caller_that_leaves_is_noticed_once,
    a_worker_that_dies_is_noticed,
    a_new_worker_takes_its_place,
    nonsense_costs_its_sender_alone,
    hanging_up_ends_a_connection,
    waits_end,
    a_worker_that_is_not_there_cannot_be_reached,
)
"""Every check, in the order in which they run."""
