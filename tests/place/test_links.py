"""The cost model: the published values, in kilobytes and milliseconds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import InputError, Links
from fairway.place.links import EARLY_LINKS, SIMULATOR_LINKS, SYSTEM_LINKS

KILOBYTE = 1024
LINKS = Links()


@pytest.mark.parametrize(
    ("gigabytes", "milliseconds"),
    [(5.72, 562.4), (0.8, 78.7), (2.0, 196.6), (2.14, 210.4), (1.7, 167.1), (2.7, 265.5), (1.8, 177.0), (3.9, 383.4)],
)
def test_a_model_takes_the_published_time_to_the_device(gigabytes: float, milliseconds: float) -> None:
    assert 1000 * LINKS.to_device(gigabytes * 1e6 * KILOBYTE) == pytest.approx(milliseconds, abs=0.05)


@pytest.mark.parametrize(("kilobytes", "milliseconds"), [(0.5, 0.002), (2, 0.00227), (3000, 0.24042)])
def test_a_message_takes_the_published_time_over_the_network(kilobytes: float, milliseconds: float) -> None:
    assert 1000 * LINKS.network(kilobytes * KILOBYTE) == pytest.approx(milliseconds, abs=5e-6)


@pytest.mark.parametrize(("kilobytes", "milliseconds"), [(2, 0.00267), (3000, 0.83032)])
def test_data_between_devices_is_staged_through_both_hosts(kilobytes: float, milliseconds: float) -> None:
    size = kilobytes * KILOBYTE
    assert 1000 * LINKS.between_hosts(size) == pytest.approx(milliseconds, abs=5e-6)
    assert LINKS.within_host(size) == pytest.approx(LINKS.between_hosts(size) - LINKS.network(size))


@pytest.mark.parametrize("kilobytes", [0.0, 0.999, 1.0, 2.5, 3.999, 4.0, 100.0, 1e6])
def test_the_formulas_in_kilobytes_and_milliseconds_are_reproduced(kilobytes: float) -> None:
    if kilobytes < 1:
        network = 0.002
    elif kilobytes < 4:
        network = kilobytes / ((3 + 2 * kilobytes) * 1048.576) + 0.002
    else:
        network = kilobytes / (12 * 1048.58) + 0.002
    size = kilobytes * KILOBYTE
    assert 1000 * LINKS.network(size) == pytest.approx(network, rel=1e-12)
    assert 1000 * LINKS.to_device(size) == pytest.approx(kilobytes / (9.7 * 1048.58), rel=1e-12)
    assert 1000 * SIMULATOR_LINKS.to_host(size) == pytest.approx(kilobytes / (9.7 * 1048.58), rel=1e-12)
    assert 1000 * SYSTEM_LINKS.to_host(size) == pytest.approx(kilobytes / (4.7 * 1048.58) + 0.002, rel=1e-12)
    assert 1000 * SYSTEM_LINKS.to_device(size) == pytest.approx(kilobytes / (9.7 * 1048.58) + 0.002, rel=1e-12)
    assert 1000 * EARLY_LINKS.to_device(size) == pytest.approx(kilobytes / (4.7 * 1048.58), rel=1e-12)


@given(st.floats(0, 1e10), st.floats(0, 1e10))
def test_more_bytes_never_arrive_sooner(first: float, second: float) -> None:
    small, large = sorted((first, second))
    for cost in (LINKS.to_device, LINKS.to_host, LINKS.between_hosts, LINKS.within_host):
        assert cost(small) <= cost(large) + 1e-7  # the network's ramp has a step of less than this
    assert LINKS.within_host(large) <= LINKS.between_hosts(large)


@pytest.mark.parametrize(
    ("field", "value"), [("network_bandwidth", 0.0), ("network_latency", -1.0), ("to_host_bandwidth", float("nan"))]
)
def test_links_without_sense_are_refused(field: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"links\.{field}: {value} given, expected a number >"):
        Links(**{field: value})
