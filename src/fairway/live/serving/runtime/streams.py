"""Results that come in pieces: each goes out as soon as it is there, and together they are the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator


def collected(
    pieces: Iterator[object], hand_on: Callable[[int, object], None], is_dropped: Callable[[], bool]
) -> list[object]:
    """All pieces, each handed on with its number as it comes, until the client waits for no more of them."""
    found: list[object] = []
    for piece in pieces:
        hand_on(len(found), piece)
        found.append(piece)
        if is_dropped():
            close = getattr(pieces, "close", None)
            if close is not None:
                close()
            break
    return found
