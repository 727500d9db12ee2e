"""How long data takes between the processes of one machine."""

from __future__ import annotations

from fairway.links import GIGABYTE_PER_SECOND, Links

LOCAL_LINKS = Links(
    network_latency=2e-4,
    network_bandwidth=4 * GIGABYTE_PER_SECOND,
    to_device_bandwidth=4 * GIGABYTE_PER_SECOND,
    to_host_bandwidth=4 * GIGABYTE_PER_SECOND,
    copy_latency=2e-5,
)
"""A message wakes the other process up, which takes longer than any message does, and bytes are copied once into shared
memory."""
