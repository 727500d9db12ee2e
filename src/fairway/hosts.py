"""Which names and addresses of hosts are the machine itself."""

from __future__ import annotations

import ipaddress


def is_this_machine(host: str) -> bool:
    """Whether only this machine is reached by a name or an address: `localhost`, what ends so, and loopback addresses.

    No name server is asked for the names (RFC 6761), so that no other machine can hide behind them.
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
