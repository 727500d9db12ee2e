"""The conformance kit of worker pools: processes start, are noticed when they end, and end when they should.

`check_worker_pool` runs every check of `CHECKS`, each on a pool of its own, whose processes live until they are ended.
A failure names the check and what happened.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.live.serving.seams.conformance import PATIENCE_SECONDS, SeamError, require, require_equal
from fairway.live.serving.seams.worker_pool import WorkerPool

Now = Callable[[], float]


def check_worker_pool(make: Callable[[], WorkerPool], now: Now) -> None:
    """Raise `SeamError` unless pools that `make` makes pass every check; `now` is the clock by which they wait."""
    for check in CHECKS:
        pool = make()
        try:
            check(pool, now)
        except SeamError:
            raise
        except Exception as error:
            raise SeamError(f"check '{check.__name__}' fails: raises {type(error).__name__}: {error}") from error
        finally:
            pool.stop(0.0)
            pool.close()


def processes_live_until_they_are_ended(pool: WorkerPool, now: Now) -> None:
    """A worker that was not started has not ended, nor has one that was; each has a process of its own."""
    here = processes_live_until_they_are_ended
    require(here, pool.ended(0) is None, "a worker has ended that was never started")
    for number in range(3):
        pool.start(number, 0)
    _pass(pool, now, 0.3)
    require_equal(here, [pool.ended(number) for number in range(3)], [None] * 3, "how they have ended")
    require_equal(here, len({pool.pid(number) for number in range(3)}), 3, "processes")


def a_death_is_noticed_at_once(pool: WorkerPool, now: Now) -> None:
    """A wait ends when a process does; how it ended is known, and that no other one has."""
    here = a_death_is_noticed_at_once
    pool.start(0, 0)
    pool.start(1, 0)
    _pass(pool, now, 0.3)
    pool.kill(0)
    began = now()
    while pool.ended(0) is None and now() - began < PATIENCE_SECONDS:
        pool.wait(PATIENCE_SECONDS, ())
    require(here, now() - began < PATIENCE_SECONDS / 2, f"the death of a worker was noticed after {now() - began} s")
    require(here, bool(pool.ended(0)), "how it ended is not said")
    require(here, pool.ended(1) is None, "another worker has ended")
    require(here, bool(pool.last_words(0)), "its last words are empty")
    began = now()
    pool.wait(0.05, ())
    require(here, now() - began >= 0.04, "a wait ends at once for a death that is known")


def a_new_process_takes_its_place(pool: WorkerPool, now: Now) -> None:
    """A worker that has ended can be started again: it lives, in another process."""
    here = a_new_process_takes_its_place
    pool.start(0, 0)
    _pass(pool, now, 0.1)
    before = pool.pid(0)
    _kill(pool, now, 0)
    pool.start(0, 1)
    _pass(pool, now, 0.3)
    require(here, pool.ended(0) is None, f"the new process has ended: {pool.ended(0)}")
    require(here, pool.pid(0) != before, "the new process is the old one")
    _kill(pool, now, 0)
    require(here, pool.ended(0) is not None, "the death of the new process was not noticed")


def waits_end(pool: WorkerPool, now: Now) -> None:
    """A wait ends when its time is over, and when the pool is woken, also just before."""
    pool.start(0, 0)
    _pass(pool, now, 0.1)
    began = now()
    pool.wait(0.05, ())
    require(waits_end, 0.04 <= now() - began < PATIENCE_SECONDS, f"0.05 s took {now() - began} s")
    pool.wake()
    began = now()
    pool.wait(PATIENCE_SECONDS, ())
    require(waits_end, now() - began < PATIENCE_SECONDS / 2, "a wait did not end when the pool was woken")


def stopping_ends_all(pool: WorkerPool, now: Now) -> None:
    """When `stop` returns, all processes have ended, also those that were not asked before."""
    for number in range(3):
        pool.start(number, 0)
    _pass(pool, now, 0.3)
    _kill(pool, now, 1)
    pool.stop(5.0)
    ended = [pool.ended(number) is not None for number in range(3)]
    require_equal(stopping_ends_all, ended, [True] * 3, "which have ended")


CHECKS: tuple[Callable[[WorkerPool, Now], None], ...] = (
    processes_live_until_they_are_ended,
    a_death_is_noticed_at_once,
    a_new_process_takes_its_place,
    waits_end,
    stopping_ends_all,
)
"""Every check, in the order in which they run."""


def _pass(pool: WorkerPool, now: Now, seconds: float) -> None:
    end = now() + seconds
    while (left := end - now()) > 0:
        pool.wait(left, ())


def _kill(pool: WorkerPool, now: Now, number: int) -> None:
    pool.kill(number)
    end = now() + PATIENCE_SECONDS
    while pool.ended(number) is None and now() < end:
        pool.wait(0.05, ())
