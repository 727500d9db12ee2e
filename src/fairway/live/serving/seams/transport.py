"""Messages between the processes of a served application: workers, clients, and the supervisor.

A worker program has one `Transport`. It sends to other workers by their number, and to its callers (clients, the
supervisor, other workers) by whatever stands for them in what they sent. Clients and the supervisor have a `Line` to
each worker that they call. Between two ends, messages arrive in the order in which they were sent, none of them twice;
when one end is gone, the other end hears of it once, after everything that was said before.

Sending never waits for the other end. A caller that sends what is no message loses its connection, and no other process
notices.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from fairway.errors import FairwayError

Message: TypeAlias = tuple[Any, ...]
"""A word that says what it is, and its parts: plain values, which go to another process as copies."""

Address: TypeAlias = Hashable
"""A worker by its number, or one of the callers of a worker by what stands for it as the sender of an `Arrival`."""


class WireError(FairwayError):
    """The other side does not speak as it should."""


class Arrival(NamedTuple):
    """A message that has come, or the news that its sender is gone: then `message` is None."""

    sender: Address
    message: Message | None


class Transport(Protocol):
    """The messages of one worker program; only `wake` may be called from other threads than the program's own."""

    def listen(self) -> None:
        """From now on, others can reach this worker."""
        ...

    def stay_reachable(self) -> None:
        """Listen anew if others cannot reach this worker any more, since a stage has removed what they reach it by."""
        ...

    def send(self, to: Address, message: Message) -> bool:
        """Send a message, now or as soon as the other end can take it; False if that end is known to be gone.

        True promises no more than that: the other end may die before it has read the message.
        """
        ...

    def receive(self, seconds: float | None) -> Sequence[Arrival]:
        """What has come; if nothing has, wait for it, but no longer than this (None: without end)."""
        ...

    def wake(self) -> None:
        """Let `receive` return, the one that waits now or else the next one."""
        ...

    def hang_up(self, address: Address) -> None:
        """End the connection with a caller or to a worker: nothing more comes from there, not even that it is gone."""
        ...

    def close(self) -> None:
        """End all connections, and be reached no more, as when the process dies."""
        ...


class Line(Protocol):
    """A connection of a client or of the supervisor to one worker, which has to look for what comes over it.

    The two ends may have to agree on something before the first message goes out: that takes `receive`, too.
    """

    @property
    def unwritten(self) -> bool:
        """Whether a message is kept that could not go out yet; `flush` or `receive` sends it when that is possible."""
        ...

    def send(self, message: Message) -> bool:
        """Send a message, now or later; True if `unwritten`. Raises `OSError` if the worker is gone."""
        ...

    def flush(self) -> bool:
        """Send what is kept, as far as the worker takes it; True if something is left. Raises as `send` does."""
        ...

    def receive(self, seconds: float | None = 0.0) -> Sequence[Message] | None:
        """The messages that have come, after waiting for one no longer than this; None when the worker is gone.

        Raises `WireError` if what came is no message.
        """
        ...

    def fileno(self) -> int:
        """A descriptor that can be read when something has come, for event loops."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class Network(Protocol):
    """What connects the workers of one application and their clients."""

    def now(self) -> float:
        """The time, in seconds, by which waits are counted: one clock for all processes, since times travel."""
        ...

    def transport(self, number: int) -> Transport:
        """The transport of a worker, for the one process that is this worker now; it does not listen yet."""
        ...

    def connect(self, number: int) -> Line:
        """A line to a worker; raises `OSError` if it cannot be reached."""
        ...

    def is_near(self, number: int) -> bool:
        """Whether a worker shares memory with this process, so that large values need not travel."""
        ...
