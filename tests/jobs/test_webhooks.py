"""Which addresses a job may have told of its end: no other scheme, no user in it, and no host that is not allowed."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.errors import InputError
from fairway.jobs.description import parse_job
from fairway.jobs.webhooks import allowed_host, host_of, refuse_other_hosts, webhook


@pytest.mark.parametrize(
    "address",
    ["file:///etc/passwd", "ftp://x", "//x", "x", "", "http://a@b/", "http://a:b@c/", "http://a\\@b/", "http://a b/",
     "https://x#@evil", "http://x\n/", "http://\u0430.example/", f"http://x/{'y' * 2000}", "http:///x", 5, None, ["http://x"]],
)  # fmt: skip
def test_what_is_no_plain_web_address_is_refused(address: object) -> None:
    with pytest.raises(InputError, match="expected an address such as"):
        webhook(address)


def test_a_description_says_which_field_is_wrong() -> None:
    with pytest.raises(InputError, match=r"^job: notify: \"file:///etc/passwd\" given, expected an address"):
        parse_job("run: a\nnotify: file:///etc/passwd\n", "job")


@pytest.mark.parametrize(
    ("address", "host", "fits"),
    [
        ("https://h.example/x", "h.example", True),
        ("https://H.example:443/x", "H.Example", True),
        ("https://h.example:8443/", "h.example", False),
        ("https://h.example:8443/", "h.example:8443", True),
        ("http://h.example:443/", "h.example", False),
        ("http://h.example.evil/", "h.example", False),
        ("http://evil/h.example", "h.example", False),
        ("http://[::1]/", "[::1]", True),
        ("http://127.0.0.1:8642/tokens", "127.0.0.1", False),
    ],
)
def test_a_host_is_allowed_at_its_usual_port_or_the_one_that_is_given(address: str, host: str, fits: bool) -> None:
    webhook(address)
    if fits:
        refuse_other_hosts(address, [allowed_host(host)])
    else:
        with pytest.raises(InputError, match="this server tells no such host of jobs"):
            refuse_other_hosts(address, [allowed_host(host)])


@pytest.mark.parametrize("host", ["", "a b", "http://x", "x/y", "*", "x:99999999", "x:70000", "a@b"])
def test_a_wrong_host_is_refused(host: str) -> None:
    with pytest.raises(InputError, match=r"given, expected a host, as in hooks\.example"):
        allowed_host(host)


@given(st.text(alphabet="http://a.b@:\\#?[]1 %\t", max_size=30).map(lambda text: f"http://{text}"))
def test_the_host_that_is_checked_is_the_one_that_is_connected_to(text: str) -> None:
    try:
        address = webhook(text)
        url = httpx.URL(address)
    except (InputError, httpx.InvalidURL):
        return
    host = f"[{url.host}]" if ":" in url.host else url.host
    assert host_of(address) == f"{host}:{url.port or 80}"
