"""Decides in a process of its own, within a budget of time: a decision that never ends is given up, and nothing else.

A policy is code that only the end of its process can stop: a solver may lose its way, and compiled code does not even
let other threads run. So problems are sent to a process that does nothing else. When the budget is spent the process is
killed, another is started for the next problem, and the engine hears of it by an `UndecidedError`, upon which it goes
by the decision before. All controllers of this process share two such processes: one for the rounds, one for everything
else (trials at the door, questions), so that no question holds up a round.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from copy import copy
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from fairway.allocate.allocation import Allocation
from fairway.allocate.policy import Policy, UndecidedError
from fairway.allocate.problem import Problem
from fairway.errors import FairwayError
from fairway.live.training.decision import server as decision_server
from fairway.live.training.decision.messages import allocation_of, problem_message
from fairway.live.training.decision.server import DECIDED, REFUSED

_LOG = logging.getLogger(__name__)

_START_SECONDS = 120.0
"""How long a process may take until it can decide: it loads a solver and compiled code."""

_WARM_SECONDS = 300.0
"""The budget of a first, small problem, for which code may have to be compiled; it is not counted against any job."""

_SMALL = Problem.of_arrays(
    {"fast": 1, "slow": 1},
    [[2.0, 1.0], [1.0, 1.0]],
    steps_left=[10.0, 20.0],
    elapsed=[1.0, 1.0],
    isolated_elapsed=[1.0, 1.0],
    prices={"fast": 2.0, "slow": 1.0},
)

_PATIENCE_SECONDS = 60.0
"""How much longer than its budget a decision may take by the clock, while the process waits for a processor."""

_QUESTION_SECONDS = 5.0
"""The budget of a question, such as whether the policy can decide about a new job at all."""

_QUESTION_WAIT_SECONDS = 30.0
"""How long a question waits for the process while that has another, or is just starting."""

_IMPATIENT_SECONDS = 1.0
"""The same for a question that need not be asked."""


class BusyError(FairwayError):
    """The process has something else to decide, which says nothing about the problem; an engine is not to see it."""


class DecisionProcess:
    """One process that decides; any thread may ask, one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None
        self._warm: set[str] = set()

    def warm_up(self, policy: Policy) -> None:
        """Have the process started and the policy's code loaded, so that its first decision takes no longer."""
        with self._lock, suppress(UndecidedError, EOFError, OSError):
            self._warmed_up(policy)

    def close(self) -> None:
        """End the process, whatever it does; the next question starts another."""
        process = self._process
        if process is not None:
            process.kill()  # which ends the wait of a thread that has asked it something
        with self._lock:
            self._kill()

    def decide(self, policy: Policy, problem: Problem, seconds: float, *, wait: float = -1.0) -> Allocation:
        """The policy's decision; raises an `UndecidedError` if there is none within so many seconds.

        With `wait`, a `BusyError` if the process has not ended what it had before within that time.
        """
        if not self._lock.acquire(timeout=wait):
            raise BusyError("others are being decided about at the moment; try again")
        try:
            return self._decide(policy, problem, seconds)
        except (EOFError, OSError) as error:
            self._kill()
            raise UndecidedError(f"policy '{policy.name}' ended the process that decides ({error!r})") from None
        finally:
            self._lock.release()

    def _decide(self, policy: Policy, problem: Problem, seconds: float) -> Allocation:
        kind, answer = self._asked(self._warmed_up(policy), policy, problem, seconds)
        if kind == DECIDED:
            return allocation_of(answer, problem)
        if kind == REFUSED:
            raise UndecidedError(answer)
        _LOG.error("policy '%s' failed: %s", policy.name, answer)
        raise UndecidedError(f"policy '{policy.name}' failed: {' '.join(answer.split())}")

    def _warmed_up(self, policy: Policy) -> Connection[Any, Any]:
        connection = self._running()
        if policy.name not in self._warm:
            self._asked(connection, policy, _SMALL, _WARM_SECONDS)
            self._warm.add(policy.name)
        return connection

    def _asked(
        self, connection: Connection[Any, Any], policy: Policy, problem: Problem, seconds: float
    ) -> tuple[str, Any]:
        connection.send((policy, problem_message(problem), seconds))
        if not self._answers(connection, seconds):
            self._kill()
            raise UndecidedError(f"policy '{policy.name}' took more than {seconds:g} s to decide")
        answer: tuple[str, Any] = connection.recv()
        return answer

    def _answers(self, connection: Connection[Any, Any], seconds: float) -> bool:
        """Whether an answer comes in time, by the time of a processor that the process has had, where that is known.

        On a machine that is busy with other things it may take longer by the clock.
        """
        if self._process is None or (before := _processor_seconds(self._process.pid)) is None:
            return connection.poll(seconds)
        deadline = time.monotonic() + seconds + _PATIENCE_SECONDS
        needs = seconds
        while not connection.poll(needs):
            needs = seconds - ((_processor_seconds(self._process.pid) or math.inf) - before)
            if needs <= 0 or time.monotonic() >= deadline:
                return False
        return True

    def _running(self) -> Connection[Any, Any]:
        """The connection to the process, which is started if there is none."""
        if self._process is not None and self._process.poll() is None and self._connection is not None:
            return self._connection
        self._kill()
        ours, theirs = Pipe()
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", decision_server.__name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment,
                pass_fds=[theirs.fileno()],
                process_group=0,  # what a terminal sends to the controller is not for it
            )
        self._connection = ours
        if not ours.poll(_START_SECONDS):
            self._kill()
            raise UndecidedError(f"the process that decides did not start within {_START_SECONDS:g} s")
        ours.recv()
        return ours

    def _kill(self) -> None:
        self._warm.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _processor_seconds(process: int) -> float | None:
    """How long a process has had a processor so far; None where the system does not say."""
    try:
        user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    except (OSError, ValueError):
        return None
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


FOR_ROUNDS = DecisionProcess()
FOR_QUESTIONS = DecisionProcess()
atexit.register(FOR_ROUNDS.close)
atexit.register(FOR_QUESTIONS.close)


def _warm_up(policy: Policy) -> None:
    """One after the other, so that the first round waits for no question."""
    FOR_ROUNDS.warm_up(policy)
    FOR_QUESTIONS.warm_up(policy)


class BudgetedPolicy:
    """A policy whose decisions are made within a budget, elsewhere; the thread that made it decides, others ask."""

    def __init__(self, policy: Policy, seconds: float) -> None:
        self._policy, self._seconds, self._wait = policy, seconds, _QUESTION_WAIT_SECONDS
        self._decides = threading.get_ident()
        threading.Thread(target=_warm_up, args=(policy,), daemon=True).start()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # such as those by which objects are copied
            raise AttributeError(name)
        return getattr(self._policy, name)

    @property
    def name(self) -> str:
        """The name of the policy."""
        return self._policy.name

    def allocate(self, problem: Problem) -> Allocation:
        """Decide; raises an `UndecidedError` if that takes too long, or fails."""
        if threading.get_ident() == self._decides:
            return FOR_ROUNDS.decide(self._policy, problem, self._seconds)
        return FOR_QUESTIONS.decide(self._policy, problem, min(self._seconds, _QUESTION_SECONDS), wait=self._wait)


def budgeted(policy: Policy, seconds: float) -> Policy:
    """The policy with a budget for its decisions, as a policy: it has all that its policy has."""
    return cast("Policy", BudgetedPolicy(policy, seconds))


def impatient(policy: Policy) -> Policy:
    """The same policy for a question that is not worth waiting for behind another."""
    if not isinstance(policy, BudgetedPolicy):
        return policy
    other = copy(policy)
    other._wait = _IMPATIENT_SECONDS
    return cast("Policy", other)
