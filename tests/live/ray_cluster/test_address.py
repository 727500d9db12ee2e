"""What is wrong with an address, or with the Ray that is installed, is said before Ray is asked."""

from __future__ import annotations

import socket

import pytest

from fairway.errors import InputError
from fairway.live.ray_cluster.address import refuse_old_ray, refuse_silent_address


@pytest.mark.parametrize("address", ["nonsense", "host:", ":6379", "host:port", "host:0", "ray://", "host:99999"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="expected auto"):
        refuse_silent_address(address)


def test_an_address_where_nothing_listens_is_refused_and_one_where_something_does_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        refuse_silent_address(f"127.0.0.1:{port}")
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        with pytest.raises(InputError, match=f"no Ray at {address}"):
            refuse_silent_address(address)


@pytest.mark.parametrize("version", ["2.48.0", "2.9.3", "1.13.0"])
def test_an_old_ray_is_refused_with_both_versions(version: str) -> None:
    with pytest.raises(InputError, match=rf"ray {version} is installed, expected 2\.49"):
        refuse_old_ray(version)


@pytest.mark.parametrize("version", ["2.49.0", "2.60.0", "3.0.0rc1"])
def test_a_new_ray_is_not(version: str) -> None:
    refuse_old_ray(version)
