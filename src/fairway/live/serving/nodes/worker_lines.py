"""The lines of a keeper to what runs the workers of its node: which life each is to begin, and how each has ended.

A runner of workers says its name when it connects. What the supervisor has for it is kept until then; what it says, and
that it is gone, the supervisor hears. One that the supervisor has dismissed is let go whenever it comes: that is how it
ends, too, if no other way leads to it.
"""

from __future__ import annotations

from fairway.live.serving.nodes.node_transport import NodeTransport
from fairway.live.serving.seams.transport import Address, Message


class WorkerLines:
    """Runners by name, and what to tell the supervisor of them, in `news`."""

    def __init__(self, transport: NodeTransport) -> None:
        self._transport = transport
        self._there: dict[str, Address] = {}
        self._first: dict[str, Message] = {}
        self._dismissed: set[str] = set()
        self.news: list[Message] = []

    def came(self, name: str, address: Address) -> None:
        """A runner has connected."""
        if name in self._dismissed:
            self._transport.hang_up(address)
            return
        self._there[name] = address
        self.news.append(("joined", name))
        first = self._first.pop(name, None)
        if first is not None:
            self._transport.send(address, first)

    def begin(self, name: str, number: int, epoch: int) -> None:
        """A life of a worker is to begin, now or when its runner is there."""
        message = ("begin", number, epoch)
        if name in self._there:
            self._transport.send(self._there[name], message)
        else:
            self._first[name] = message

    def tell(self, message: Message, name: str | None = None) -> None:
        """Tell a runner something, if it is there, or all of them."""
        for each in [name] if name is not None else list(self._there):
            if each in self._there:
                self._transport.send(self._there[each], message)

    def dismiss(self, name: str) -> None:
        """Let a runner go; whatever it says does not count any more."""
        self._dismissed.add(name)
        self._first.pop(name, None)
        address = self._there.pop(name, None)
        if address is not None:
            self._transport.hang_up(address)

    def gone(self, address: Address) -> None:
        """A connection has ended, which may have been that of a runner."""
        for name in [name for name, each in self._there.items() if each is address]:
            del self._there[name]
            self.news.append(("gone", name))
