"""Being a client of a Ray cluster; what can be wrong is one line."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Any

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
    with TemporaryFile() as printed:
        try:
            with _standard_error_to(printed):
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
            printed.seek(0)
            why = said_of(address, error, printed.read().decode(errors="replace"))
            raise InputError(f"address: {why}") from None
        except SystemExit:  # Ray ends the process that has asked for a head that does not speak as it does
            raise InputError(f"address: what listens at {address} does not answer as Ray does") from None


def disconnect() -> None:
    """Be a client no more; what this one has started in Ray ends, but for detached actors."""
    ray = ray_module()
    if ray.is_initialized():
        ray.shutdown()


def reason_of(error: BaseException) -> str:
    """The last line of what went wrong: Ray puts the whole trace of another process into its errors."""
    if isinstance(error, TimeoutError):
        return "it does not answer"
    cause = getattr(error, "cause", None) or error
    lines = [line for line in str(cause).strip().splitlines() if line.strip()]
    missing = next((line for line in lines if "No module named 'fairway" in line), None)
    if missing is not None:
        return "Fairway is not installed there; install it, as here, for the Python that Ray uses"
    return lines[-1].strip() if lines else type(error).__name__


@contextmanager
def _standard_error_to(file: IO[bytes]) -> Iterator[None]:
    """Keep what Ray's own library prints about a failure, past Python, from the screen: the error is one line."""
    kept = os.dup(2)
    try:
        os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
