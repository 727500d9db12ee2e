"""The client of Ray of a served application, in a process of its own: Ray may end it, and the service goes on.

    python -m fairway.live.serving.ray.driver '{"address": "auto", "namespace": …, "prefix": …}'

After the line that says whether it works come answers, one for each question that it reads (`ray_client`). It knows
nothing that another one could not find out: actors are detached, so that they outlive it, and go by their names. With
its standard input it ends all actors whose names have the application's prefix, if they do not end by themselves.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any

import ray
from ray.util import list_named_actors

from fairway.errors import InputError
from fairway.live.ray_cluster.client import connect, reason_of
from fairway.live.ray_cluster.nodes import NODE_ID_LABEL, RayNode, living
from fairway.live.serving.ray.node_agent import NodeAgent, WorkerActor

_KINDS: dict[str, type] = {"agent": NodeAgent, "worker": WorkerActor}
_MOST_AT_A_TIME = 16
_ENDING_SECONDS, _LOOK_SECONDS = 8.0, 0.1


class Driver:
    """Does what it is asked; `answer` takes the number of a question, whether it went well, and what is said to it."""

    def __init__(self, prefix: str, answer: Callable[[tuple[int, bool, Any]], None]) -> None:
        self._prefix, self._answer = prefix, answer
        self._handles: dict[str, Any] = {}
        self._threads = ThreadPoolExecutor(_MOST_AT_A_TIME)

    def take(self, number: int, question: str, content: tuple[Any, ...]) -> None:
        """Take in a question, which is answered some time."""
        self._threads.submit(self._find_out, number, question, content)

    def _find_out(self, number: int, question: str, content: tuple[Any, ...]) -> None:
        try:
            found = _QUESTIONS[question](self, *content)
        except Exception as error:
            self._answer((number, False, reason_of(error)))
            return
        if isinstance(found, ray.ObjectRef):
            found.future().add_done_callback(partial(self._done, number))
        else:
            self._answer((number, True, found))

    def _done(self, number: int, future: Any) -> None:
        error = future.exception()
        self._answer((number, True, future.result()) if error is None else (number, False, reason_of(error)))

    def _nodes(self) -> list[RayNode]:
        rows: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        return living(rows)

    def _make(
        self, kind: str, name: str, node: str, gpus: int, content: tuple[Any, ...], method: str, said: tuple[Any, ...]
    ) -> Any:
        """Make an actor on a node, and call a method of it at once."""
        actor: Any = ray.remote(_KINDS[kind]).options(
            name=name,
            lifetime="detached",
            num_cpus=0,
            num_gpus=gpus,
            max_restarts=0,  # not by Ray: a new one has to be told all that this one was
            max_concurrency=8,
            label_selector={NODE_ID_LABEL: node},
        )
        self._handles[name] = made = actor.remote(*content)
        return getattr(made, method).remote(*said)

    def _call(self, name: str, method: str, *said: Any) -> Any:
        return getattr(self._handle(name), method).remote(*said)

    def _kill(self, name: str) -> None:
        with suppress(ValueError):  # there is none of this name any more
            ray.kill(self._handle(name))
        self._handles.pop(name, None)

    def _handle(self, name: str) -> Any:
        if name not in self._handles:
            self._handles[name] = ray.get_actor(name)
        return self._handles[name]

    def end_all(self) -> None:
        """Wait for all actors of the application to end, as they do without it, and kill the others."""
        deadline = time.monotonic() + _ENDING_SECONDS
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        for name in left:
            with suppress(ValueError):
                ray.kill(ray.get_actor(name))

    def _left(self) -> list[str]:
        return [name for name in list_named_actors() if name.startswith(self._prefix)]


_QUESTIONS: dict[str, Callable[..., Any]] = {
    "nodes": Driver._nodes,
    "make": Driver._make,
    "call": Driver._call,
    "kill": Driver._kill,
}


def main(text: str) -> int:
    """Answer until the standard input ends; 2 if Ray cannot be used, with the reason on standard output."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    options = json.loads(text)
    answers, lock = os.fdopen(os.dup(1), "wb"), Lock()
    os.dup2(2, 1)  # what Ray prints is no answer
    try:
        connect(options["address"], options["namespace"])
        is_far = options["address"].startswith("ray://")
        said = {"ok": True, "address": options["address"] if is_far else ray.get_runtime_context().gcs_address}
    except (InputError, OSError) as error:
        said = {"ok": False, "error": str(error)}
    answers.write(json.dumps(said).encode() + b"\n")
    answers.flush()
    if not said["ok"]:
        return 2

    def answer(content: tuple[int, bool, Any]) -> None:
        with lock, suppress(OSError):
            pickle.dump(content, answers)
            answers.flush()

    driver = Driver(options["prefix"], answer)
    with suppress(EOFError):
        while True:
            driver.take(*pickle.load(sys.stdin.buffer))
    with suppress(Exception):  # Ray may be away, and actors end without it
        driver.end_all()
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1])
    os._exit(code)  # Ray's own end can take seconds, and there is nothing to end
