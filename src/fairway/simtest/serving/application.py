"""What is served in a simulated history: stages that compute something that can be checked, and some that do harm.

A stage cannot wait in virtual time. One that takes long, hangs or ends its process says so to the machine that it runs
on (`on_machine`), which lets it happen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import fairway
from fairway.live.serving.simulated.machine import SimulatedMachine

_LARGE_BYTES = 33_000
_PIECES = 4


@dataclass(slots=True)
class Scene:
    """Where stages run now, what the next loads of each model do instead of loading, and what harm was done."""

    machine: SimulatedMachine
    loads: dict[str, deque[str]] = field(default_factory=dict)
    did: Callable[[str], None] = lambda _: None


_scene: Scene | None = None


def on_scene(scene: Scene | None) -> None:
    """Let stages run there from now on."""
    global _scene  # noqa: PLW0603 - stages are found by name, and can be handed nothing
    _scene = scene


class _SilentError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class _Unpicklable:
    def __reduce__(self) -> Any:
        raise SystemExit(4)


def _raise(error: BaseException) -> Any:
    raise error


def _exit() -> None:
    assert _scene is not None
    assert _scene.machine.running is not None
    _scene.machine.running.exit("7")


def _hang() -> None:
    """A stage beside the loop hangs there, one in the loop keeps the whole process."""
    assert _scene is not None
    if _scene.machine.background is None:
        _keep()
    else:
        _scene.machine.background.never_end()


def _keep() -> None:
    """No other code of the process runs any more."""
    assert _scene is not None
    assert _scene.machine.running is not None
    _scene.machine.running.hang()


def _spend(seconds: float) -> None:
    assert _scene is not None
    if _scene.machine.background is not None:
        _scene.machine.background.spend(seconds)


HARMS: dict[str, Callable[[], Any]] = {
    "raise": lambda: _raise(ValueError("no luck")),
    "raise-silent": lambda: _raise(_SilentError()),
    "raise-exit": lambda: _raise(SystemExit(1)),
    "raise-interrupt": lambda: _raise(KeyboardInterrupt()),
    "unpicklable": _Unpicklable,
    "exit": _exit,
    "hang": _hang,
    "keep": _keep,
    "slow": lambda: _spend(0.7),
}
"""What a stage or a load does that does harm; one that is slow is answered all the same."""

ENDING = frozenset({"exit", "hang", "keep"})
"""The harms that cost a worker."""


def _done(harm: str) -> Any:
    assert _scene is not None
    _scene.did(harm)
    return HARMS[harm]()


class _Loading:
    """Its model is its name; the scene may have something else in store for a load."""

    def load(self) -> str:
        name = type(self).__name__
        assert _scene is not None
        planned = _scene.loads.get(name)
        if planned:
            harm = planned.popleft()
            _scene.did(f"load-{harm}")
            HARMS[harm]()
        return name


@fairway.stage(memory="4MB", seconds=2e-3)
class Double(_Loading):
    """Twice a number."""

    def __call__(self, model: str, numbers: list[int]) -> list[int]:
        assert model == "Double"
        return [2 * number for number in numbers]


@fairway.stage(memory="4MB", seconds=3e-3)
class Square(_Loading):
    """The square of a number."""

    def __call__(self, model: str, numbers: list[int]) -> list[int]:
        assert model == "Square"
        return [number * number for number in numbers]


@fairway.stage(seconds=1e-5)
class Sum:
    """The sum of three."""

    def __call__(self, first: list[int], second: list[int], third: list[int]) -> list[int]:
        return [a + b + c for a, b, c in zip(first, second, third, strict=True)]


@fairway.workflow
def fork(x: int) -> Any:
    """A fork and a join, with a stage in the end that takes the request's own input, too."""
    return Sum()(Double()(x), Square()(x), x)


@fairway.stage(memory="4MB", seconds={"cpu": {1: 4e-3, 2: 5e-3, 4: 6e-3, 8: 8e-3}})
class Together(_Loading):
    """Adds one, to several at once at little more cost."""

    def __call__(self, model: str, numbers: list[int]) -> list[int]:
        assert model == "Together"
        return [number + 1 for number in numbers]


@fairway.workflow
def together(x: int) -> Any:
    """Two stages that run several requests at once."""
    return Double()(Together()(x))


@fairway.stage(seconds=1e-5)
class Add:
    """Adds one, in the loop."""

    def __call__(self, numbers: list[int]) -> list[int]:
        return [number + 1 for number in numbers]


@fairway.workflow
def chain(x: int) -> Any:
    """Three stages that take next to no time."""
    return Add()(Add()(Add()(x)))


@fairway.stage(seconds=1e-5)
def pair(number: int, harm: str) -> tuple[int, str]:
    """Two inputs as one."""
    return number, harm


@fairway.stage(seconds=1e-3)
class Turn:
    """Bytes from the last to the first."""

    def __call__(self, pages: list[bytes]) -> list[bytes]:
        return [page[::-1] for page in pages]


@fairway.workflow
def turned(page: bytes) -> Any:
    """Large values: what a client brings, what a stage puts out, and the answer."""
    return Turn()(Turn()(Turn()(page)))


@fairway.stage(seconds=4e-3)
class Count:
    """Counts up, in pieces."""

    def __call__(self, numbers: list[int]) -> Iterator[int]:
        for piece in range(_PIECES):
            yield numbers[0] + piece


@fairway.workflow
def counted(x: int) -> Any:
    """An answer in pieces."""
    return Count()(x)


class _Harming:
    """Does what a request says that it should do, or adds one."""

    def __call__(self, asked: list[tuple[int, str]]) -> list[Any]:
        return [(_done(harm) if harm else None) or number + 1 for number, harm in asked]


@fairway.stage(seconds=3e-3)
class Harm(_Harming):
    """Does harm beside the loop."""


@fairway.stage(seconds=1e-5)
class HarmInLoop(_Harming):
    """Does harm in the loop."""


@fairway.workflow
def harming(x: int, harm: str) -> Any:
    """What may do harm, between two stages that do not."""
    return Add()(Harm()(pair(Add()(x), harm)))


@fairway.workflow
def harming_in_loop(x: int, harm: str) -> Any:
    """The same in the loop."""
    return Add()(HarmInLoop()(pair(Add()(x), harm)))


WORKFLOWS = [fork, together, chain, turned, counted, harming, harming_in_loop]
"""The application."""

HONEST = ("fork", "together", "chain", "turned", "counted")
MODELS = ("Double", "Square", "Together")


def inputs_of(workflow: str, number: int, harm: str = "") -> dict[str, Any]:
    """What a request brings: a number, somehow."""
    if workflow == "turned":
        return {"page": _page(number)}
    return {"x": number, "harm": harm} if workflow.startswith("harming") else {"x": number}


def answer_to(workflow: str, number: int) -> Any:
    """What the answer should be, worked out without any of the stages."""
    match workflow:
        case "fork":
            return 3 * number + number**2
        case "together":
            return 2 * number + 2
        case "counted":
            return [number, number + 1, number + 2, number + 3]
        case "turned":
            return bytes(reversed(_page(number)))
        case _:
            return number + 3


def _page(number: int) -> bytes:
    return number.to_bytes(8) + bytes(_LARGE_BYTES)
