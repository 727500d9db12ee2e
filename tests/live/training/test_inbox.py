"""The way in to an event loop: what is posted, asked and promised, from other threads and from its own."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

import pytest

from fairway.live.training.inbox import Inbox, OverError


def test_what_is_put_is_taken_in_order_and_ends_a_wait() -> None:
    async def main() -> list[int]:
        inbox, done = Inbox(), []
        inbox.open()
        assert inbox.take() is None
        for number in range(3):
            inbox.put(lambda number=number: done.append(number))
        await asyncio.wait_for(inbox.wait(60.0), 30.0)
        while (action := inbox.take()) is not None:
            action()
        await inbox.wait(0.0)  # what was put before is no news any more
        await inbox.wait(-1.0)
        return done

    assert asyncio.run(main()) == [0, 1, 2]


def test_another_thread_posts_and_asks() -> None:
    async def main() -> None:
        inbox = Inbox()
        inbox.open()
        done: list[str] = []
        answers: list[object] = []

        def other() -> None:
            assert inbox.post(lambda: done.append("posted"))
            answers.append(inbox.ask(lambda: 42))
            try:
                inbox.ask(lambda: 1 // 0)
            except ZeroDivisionError as error:
                answers.append(str(error))

        await asyncio.wait_for(asyncio.to_thread(other), 60.0)
        action = inbox.take()
        assert action is not None
        action()
        assert done == ["posted"]
        assert answers[0] == 42
        assert "zero" in str(answers[1])

    asyncio.run(main())


def test_without_a_loop_nothing_is_accepted() -> None:
    inbox = Inbox()
    assert inbox.post(lambda: None) is False
    with pytest.raises(OverError, match="the controller does not run"):
        inbox.ask(lambda: 1)


def test_what_was_promised_fails_with_the_loop_unless_it_was_kept() -> None:
    async def main() -> tuple[Inbox, Future[int], Future[int]]:
        inbox = Inbox()
        inbox.open()
        kept, open_one = inbox.promise(), inbox.promise()
        kept.set_result(3)
        assert kept not in inbox._asked
        inbox.close()
        with pytest.raises(OverError, match="the controller does not run"):
            inbox.promise()
        assert inbox.post(lambda: None) is False
        return inbox, kept, open_one

    inbox, kept, open_one = asyncio.run(main())
    assert kept.result(0) == 3
    with pytest.raises(OverError, match="the controller has stopped"):
        open_one.result(0)
    inbox.break_promise(kept)
    assert kept.result(0) == 3
    assert not inbox._asked


def test_a_loop_that_is_closed_takes_nothing_although_the_inbox_does_not_know() -> None:
    async def main() -> Inbox:
        inbox = Inbox()
        inbox.open()
        return inbox

    inbox = asyncio.run(main())
    assert inbox.post(lambda: None) is False
    with pytest.raises(OverError, match="the controller has stopped"):
        inbox.ask(lambda: 1)
