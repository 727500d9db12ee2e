"""Which nodes of a Ray cluster are about to end, as Ray knows it: they are drained, or their cloud takes them back.

Ray's autoscaler, `ray drain-node` and whatever watches a cloud's notices tell Ray so, with a time by when the node
ends, or without one. Ray gives such a node no new work; what runs there is left to those whose work it is.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

_LOG = logging.getLogger(__name__)


def draining_nodes() -> dict[str, float]:
    """The nodes that are being drained, by id, and when each of them ends, 0 for no such time.

    Ray tells that only to a client in the cluster itself: one of `ray://` hears of no notice.
    """
    from ray._private.state import state  # noqa: PLC0415 - Ray is an extra, and slow to import; there is no public way

    try:
        found: dict[str, int] = state.get_draining_nodes()
    except Exception as error:
        _LOG.debug("Ray does not say which nodes are drained: %s", error)
        return {}
    return {node: milliseconds / 1000 for node, milliseconds in found.items()}


def notice_of(ends_at: float) -> str:
    """What to say of such a node."""
    when = f", and it ends at {datetime.fromtimestamp(ends_at, UTC):%H:%M:%S} UTC" if ends_at else ""
    return f"Ray drains it{when}; its jobs save and move"
