"""Addresses that are told of the end of a job: which text is one, and which hosts a server lets jobs name.

A server sends requests to such an address with its own standing in the network, so jobs can name only hosts that its
admin allows: `hooks.example` at the port that its scheme has by itself, `hooks.example:8443` at that one.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from fairway.documents import shown
from fairway.errors import InputError

_LONGEST = 2000
_LARGEST_PORT = 65535
_PORTS = {"http": 80, "https": 443}
_HOST = r"([A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(?::(\d{1,5}))?"
_ADDRESS = re.compile(rf"(https?)://{_HOST}(?:[/?][!-\[\]-~]*)?")
"""All that follows the host has no blank and no backslash, which some take for the end of it."""
AN_ADDRESS = "an address such as 'https://hooks.example/fairway'"


def webhook(given: object) -> str:
    """The address itself, if it is one; raises an error that does not yet say in which field."""
    if not isinstance(given, str) or len(given) > _LONGEST or not _ADDRESS.fullmatch(given):
        words = f"{AN_ADDRESS}, of up to {_LONGEST} characters of ASCII, without a user or a password in it"
        raise InputError(f"{shown(given)} given, expected {words}")
    return given


def host_of(address: str) -> str:
    """The host of an address, with its port."""
    found = _ADDRESS.fullmatch(address)
    return "" if found is None else f"{found[2].lower()}:{found[3] or _PORTS[found[1]]}"


def allowed_host(given: str) -> str:
    """A host that may be named, with its port if it has one; raises an error that does not yet say where."""
    found = re.fullmatch(_HOST, given)
    if found is None or int(found[2] or 0) > _LARGEST_PORT:
        raise InputError(f"{shown(given)} given, expected a host, as in hooks.example or hooks.example:8443")
    return given.lower()


def refuse_other_hosts(address: str, allowed: Collection[str]) -> None:
    """Refuse an address at a host that is not allowed; by an error that does not yet say in which field."""
    host, usual = host_of(address), _PORTS.get(address.partition(":")[0])
    if any(host == (one if re.search(r":\d+$", one) else f"{one}:{usual}") for one in allowed):
        return
    raise InputError(
        f"{shown(address)} given, but this server tells no such host of jobs; "
        "its admin allows one by 'fairway up --allow-notify HOST[:PORT]'"
    )
