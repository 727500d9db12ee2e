"""Being a client of a Ray cluster; what can be wrong is one line."""

from __future__ import annotations

import logging
from typing import Any

from fairway.errors import InputError
from fairway.live.ray_cluster.address import refuse_old_ray, refuse_silent_address, said_of


def ray_module() -> Any:
    """Ray itself, which is an extra and slow to import; refuses to go on without it, or with one that is too old."""
    import ray  # noqa: PLC0415

    refuse_old_ray(ray.__version__)
    return ray


def connect(address: str, namespace: str) -> None:
    """Be a client of the cluster at an address; an `InputError` says why that is not possible."""
    ray = ray_module()
    if ray.is_initialized():
        return
    refuse_silent_address(address)
    try:
        ray.init(
            address=address,
            namespace=namespace,
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=False,
        )
        ray.nodes()  # which a wrong token does not get
    except Exception as error:
        disconnect()
        raise InputError(f"address: {said_of(address, error)}") from None
    except SystemExit:  # Ray ends the process that has asked for a head that does not speak as it does
        raise InputError(f"address: what listens at {address} does not answer as Ray does") from None


def disconnect() -> None:
    """Be a client no more; what this one has started in Ray ends, but for detached actors."""
    ray = ray_module()
    if ray.is_initialized():
        ray.shutdown()
