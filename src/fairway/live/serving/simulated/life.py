"""One simulated process as its seams see it: where its code has got to, and whether it goes on from there.

Whatever a process does that others can see, it does through its seams, and each of them says which place the code has
reached (`reach`). A simulation may end the process there, let it hang, or tear what it is about to write. The code of
a dead process may still run on for a while, since its author may have caught everything; but at its next place it ends
again, and nothing that it does any more is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any


class ProcessEnded(BaseException):
    """Raised at the place where a process ends, or hangs for good."""


class Life:
    """A process: `number` is that of its worker, None for a client or the supervisor; `name` is for messages.

    `on_place` may end it at a place. `is_over`: nothing that it does is seen any more. `is_halted`: it does nothing
    for a while. `later` is what it will do when it goes on, `at_end` what becomes of it when it is over. `tears` draws
    which parts of the next write survive: it dies in the middle of that.
    """

    def __init__(
        self, name: str, number: int | None = None, on_place: Callable[[Life, str], None] | None = None
    ) -> None:
        self.name, self.number = name, number
        self.is_over = False
        self.is_halted = False
        self.tears: Random | None = None
        self.later: list[Callable[[], None]] = []
        self.at_end: list[Callable[[], None]] = []
        self.end_process: Callable[[str, str], None] = lambda *_: None
        self.freeze_process: Callable[[], None] = lambda: None
        self.on_place = on_place

    def reach(self, place: str) -> None:
        """The code has come to a place; raises if it does not get any further."""
        if self.is_over:
            raise ProcessEnded(self.name)
        if self.on_place is not None:
            self.on_place(self, place)
            if self.is_over:
                raise ProcessEnded(self.name)

    def write(self, place: str, memory: Any, first: int, size: int, write: Callable[[], None]) -> None:
        """Write something into shared memory, of which only some words are there if the process dies meanwhile."""
        self.reach(place)
        if self.tears is None:
            write()
            return
        before = bytes(memory[first : first + size])
        write()
        for word in range(0, size, 8):
            if self.tears.random() < 0.5:
                end = min(word + 8, size)
                memory[first + word : first + end] = before[word:end]
        self.exit("-9")

    def exit(self, status: str) -> None:
        """The process ends itself here."""
        self.end_process(status, f"it has ended itself with {status}")
        raise ProcessEnded(self.name)

    def hang(self) -> None:
        """The process does nothing from here on, and lives."""
        self.freeze_process()
        raise ProcessEnded(self.name)

    def over(self) -> None:
        """From now on, nothing that it does is seen."""
        if not self.is_over:
            self.is_over = True
            for each in self.at_end:
                each()
