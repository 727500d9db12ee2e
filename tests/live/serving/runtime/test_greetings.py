from __future__ import annotations

from pathlib import Path

from fairway.live.serving.runtime.greetings import Greetings
from fairway.live.serving.runtime.lives import Lives
from fairway.live.serving.seams.transport import Address, Message
from fairway.live.serving.supervise.settings import ServingSettings

NOWHERE = Path("/nonexistent")
PLANNER = 3


class Sent:
    """Keeps what is sent; workers that are gone cannot be reached."""

    def __init__(self) -> None:
        self.to: list[Address] = []
        self.gone: set[Address] = set()
        self.hung_up: list[Address] = []

    def send(self, to: Address, message: Message) -> bool:
        assert message == ("planner", 5)
        if to in self.gone:
            return False
        self.to.append(to)
        return True

    def hang_up(self, address: Address) -> None:
        self.hung_up.append(address)


def _planner() -> tuple[Sent, Lives, Greetings]:
    settings = ServingSettings("module:workflow", NOWHERE, NOWHERE, workers=3, has_planner=True)
    sent, lives = Sent(), Lives(settings, PLANNER, 5)
    return sent, lives, Greetings(sent, lives)  # type: ignore[arg-type]  # all that greetings need of a transport


def test_a_worker_is_greeted_once_and_counts_when_it_has_answered() -> None:
    sent, _, greetings = _planner()
    greetings.greet([0, 1])
    greetings.greet([1, 2])
    assert sent.to == [0, 1, 2]
    assert greetings.answered(1, 0)
    assert not greetings.answered(1, 0), "an answer that is repeated says nothing new"
    greetings.named(1, 0)
    assert sent.to == [0, 1, 2], "the supervisor names the life that has answered"


def test_a_worker_that_cannot_be_reached_is_greeted_when_it_is_named() -> None:
    sent, _, greetings = _planner()
    sent.gone = {0}
    greetings.greet([0])
    assert not greetings.answered(0, 0), "it was never greeted"
    sent.gone = set()
    greetings.named(0, 1)
    assert sent.to == [0]
    assert greetings.answered(0, 1)


def test_a_life_that_follows_one_that_died_without_a_word_is_greeted() -> None:
    sent, lives, greetings = _planner()
    greetings.greet([0])
    assert greetings.replaced(0, 1) is None, "no life of it has answered, so none is lost"
    lives.joined(0, 1)
    greetings.named(0, 1)
    assert sent.to == [0, 0]
    assert sent.hung_up == [0], "the connection leads to the life before"
    assert not greetings.answered(0, 0), "the answer of the life before comes late"
    assert greetings.answered(0, 1)


def test_a_life_that_had_answered_is_known_to_be_replaced() -> None:
    sent, _, greetings = _planner()
    greetings.greet([0])
    assert greetings.answered(0, 0)
    assert greetings.replaced(0, 0) is None
    assert greetings.replaced(0, 1) == 0
    greetings.forget(0)
    greetings.greet([0])
    assert sent.to == [0, 0]
    assert greetings.answered(0, 1)
