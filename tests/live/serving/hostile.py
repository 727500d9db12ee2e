"""Workflows whose stages and models do harm; each does what its input says."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fairway


class _SilentError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class _EndingError(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class _LongError(Exception):
    def __str__(self) -> str:
        return "x" * 50_000_000


class _Unpicklable:
    def __reduce__(self) -> Any:
        raise SystemExit(4)


def _raise(error: BaseException) -> Any:
    raise error


def _fork_and_return() -> str:
    os.fork()
    return "forked"


def _fork_and_die() -> None:
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    os.kill(os.getpid(), signal.SIGKILL)


def _remove_sockets() -> str:
    for number in range(8):
        directory = os.environ["HOSTILE_DIRECTORY"]
        Path(directory, f"worker-{number}.sock").unlink(missing_ok=True)
    return "removed"


def _die_later() -> str:
    threading.Timer(0.05, os._exit, (5,)).start()
    return "later"


HARM: dict[str, Callable[[], Any]] = {
    "silent": lambda: _raise(_SilentError()),
    "ending": lambda: _raise(_EndingError()),
    "long": lambda: _raise(_LongError()),
    "exit": lambda: _raise(SystemExit(1)),
    "interrupt": lambda: _raise(KeyboardInterrupt()),
    "generator-exit": lambda: _raise(GeneratorExit()),
    "surrogates": lambda: _raise(ValueError("lone \ud800 surrogate")),
    "unpicklable": _Unpicklable,
    "_exit": lambda: os._exit(7),
    "segfault": lambda: ctypes.string_at(0),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "hang": lambda: time.sleep(3600),
    "keep": lambda: ctypes.PyDLL(None).sleep(3600),  # lets no other thread run
    "close": lambda: os.closerange(0, 100),
    "fork": _fork_and_return,
    "fork-and-die": _fork_and_die,
    "unlink": _remove_sockets,
    "later": _die_later,
    "nothing": lambda: "fine",
}


class _Harmful:
    def __call__(self, whats: list[str]) -> list[Any]:
        return [HARM[what.split("/")[0]]() for what in whats]


@fairway.stage(seconds=0.01)
class Harmful(_Harmful):
    """Runs beside the loop."""


@fairway.stage(seconds=1e-5)
class HarmfulInline(_Harmful):
    """Runs in the loop."""


@fairway.workflow
def harmful(what: str) -> Any:
    return Harmful()(what)


@fairway.workflow
def inline(what: str) -> Any:
    return HarmfulInline()(what)


@fairway.stage(seconds=0.002)
class Good:
    def __call__(self, numbers: list[int]) -> list[int]:
        return [number + 1 for number in numbers]


@fairway.workflow
def good(x: int) -> Any:
    return Good()(x)


@fairway.stage(memory="1MB", seconds=0.002)
class Loads:
    """Its model's load does harm."""

    def __init__(self, harm: str) -> None:
        self.harm = harm

    def load(self) -> Any:
        return HARM[self.harm]()

    def __call__(self, model: Any, texts: list[str]) -> list[Any]:
        return [str(model) + text for text in texts]


@fairway.workflow
def hanging_load(text: str) -> Any:
    return Loads("hang")(text)


@fairway.workflow
def exiting_load(text: str) -> Any:
    return Loads("_exit")(text)


@fairway.workflow
def raising_load(text: str) -> Any:
    return Loads("silent")(text)


@fairway.stage(seconds=0.002)
class Endless:
    def __call__(self, words: list[str]) -> Iterator[str]:
        while True:
            time.sleep(0.01)
            yield words[0]


@fairway.workflow
def endless(word: str) -> Any:
    return Endless()(word)


ALL = [harmful, inline, good, hanging_load, exiting_load, raising_load, endless]
