"""How the bridge comes to be a client of a Ray cluster, and what it says in one line where that is not possible."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import ray

from fairway.errors import InputError
from fairway.live.ray.address import refuse_silent_address, said_of


@dataclass(frozen=True, slots=True)
class BridgeOptions:
    """Where Ray is, in which namespace the actors are, where nodes keep their files, and where the sockets are."""

    address: str
    namespace: str
    node_directory: str
    directory: str


def connect_to_ray(options: BridgeOptions) -> None:
    """Become a client; an `InputError` says why that is not possible."""
    address = options.address
    refuse_silent_address(address)
    try:
        ray.init(
            address=address, namespace=options.namespace, log_to_driver=False, logging_level=logging.ERROR,
            configure_logging=False,
        )  # fmt: skip
        ray.nodes()  # type: ignore[no-untyped-call] # which a wrong token does not get
    except Exception as error:
        raise InputError(f"address: {said_of(address, error)}") from None
    except SystemExit:  # Ray ends the process that has asked for a head that does not speak as it does
        raise InputError(f"address: what listens at {address} does not answer as Ray does") from None
