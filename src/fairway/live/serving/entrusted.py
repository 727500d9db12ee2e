"""What the dispatcher holds of requests: their inputs, and what invokers have put out for them.

An invoker that has told of an output leaves it to the dispatcher, which removes its files when the request is over or
begins again. Nothing is unpacked here but what belongs in a reply: invokers get the parcels as they came.
"""

from __future__ import annotations

from fairway.live.serving.data import Parcel, SharedBuffers
from fairway.live.serving.held import Held, Value


class Entrusted(Held):
    """Values by request, with the parcels whose files have to go in the end."""

    def __init__(self, buffers: SharedBuffers) -> None:
        super().__init__(buffers)
        self._parcels: dict[int, list[Parcel]] = {}

    def take_output(self, key: int, stage: int, parcel: Parcel) -> None:
        """An invoker has put this out for a request; raises `OSError` if its files are gone."""
        if self.is_over(key):
            self.buffers.discard(parcel)
            return
        self._parcels.setdefault(key, []).append(parcel)
        self.keep_output(key, stage, Value(self.buffers, came=parcel))

    def begin_again(self, key: int) -> None:
        """What was put out for a request does not count any more; its input does."""
        self._let_outputs_go(key)
        self._discard(key)

    def let_go(self, key: int) -> None:
        """The request is over."""
        super().let_go(key)
        self._discard(key)

    def _discard(self, key: int) -> None:
        for parcel in self._parcels.pop(key, ()):
            self.buffers.discard(parcel)
