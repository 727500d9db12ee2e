"""Bodies of requests: how long they may be, in how many parts they may come, and what they may say they are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from fastapi import Request

from fairway.documents import Form
from fairway.errors import InputError
from fairway.service.http import documents_in
from fairway.service.http.documents_in import (
    JSON,
    looks_like_json,
    media_type,
    read_body,
    read_form,
    refuse_long_yaml,
)
from fairway.service.http.problems import ProblemError


def _request(*parts: bytes, headers: Sequence[tuple[str, str]] = (), broken: bool = False) -> Request:
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages.append({"type": "http.disconnect"} if broken else {"type": "http.request", "body": b""})

    async def receive() -> dict[str, object]:
        if not messages:
            await asyncio.sleep(3600)
        return messages.pop(0)

    raw = [(name.encode(), value.encode()) for name, value in headers]
    return Request({"type": "http", "method": "POST", "headers": raw}, receive)


def _read(*parts: bytes, most: int = 10, headers: Sequence[tuple[str, str]] = (), broken: bool = False) -> bytes:
    return asyncio.run(read_body(_request(*parts, headers=headers, broken=broken), most))


def _problem(*parts: bytes, most: int = 10, length: str | None = None, broken: bool = False) -> tuple[int, str, str]:
    headers = [] if length is None else [("content-length", length)]
    with pytest.raises(ProblemError) as caught:
        _read(*parts, most=most, headers=headers, broken=broken)
    return caught.value.status, caught.value.code, str(caught.value)


def test_a_body_is_the_same_in_however_many_parts_it_comes() -> None:
    assert _read() == b""
    assert _read(b"0123456789") == b"0123456789"
    assert _read(b"01234", b"56789") == b"0123456789"
    assert _read(*(b"%d" % number for number in range(10))) == b"0123456789"


def test_a_body_may_be_as_long_as_is_said_and_no_byte_longer() -> None:
    assert _problem(b"01234", b"567890") == (
        413, "too-large", "the body is larger than 0 KiB, the most that is taken",
    )  # fmt: skip
    assert len(_read(bytes(3072), most=3072)) == 3072
    assert _problem(bytes(3073), most=3072)[2] == "the body is larger than 3 KiB, the most that is taken"
    assert len(asyncio.run(read_body(_request(bytes(2**20))))) == 2**20
    with pytest.raises(ProblemError, match="1024 KiB"):
        asyncio.run(read_body(_request(bytes(2**20 + 1))))


def test_one_that_says_that_it_is_too_long_is_refused_before_any_of_it_is_read() -> None:
    assert _problem(length="11")[0] == 413
    assert _read(b"x", headers=[("content-length", "10")]) == b"x"
    assert _read(b"x", headers=[("content-length", "nonsense")]) == b"x"


def test_one_that_breaks_off_or_never_comes_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _problem(b"x", broken=True)[:2] == (400, "broken-off")
    monkeypatch.setattr(documents_in, "_PATIENCE_SECONDS", 0.02)
    request = _request(b"x")
    request._receive = _never
    with pytest.raises(ProblemError, match="did not come within 0 s; send it again") as caught:
        asyncio.run(read_body(request))
    assert (caught.value.status, caught.value.code) == (408, "too-slow")


async def _never() -> dict[str, object]:
    await asyncio.sleep(3600)
    return {}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ("application/json", JSON),
        (" Application/JSON ", JSON),
        ("application/json; charset=utf-8", JSON),
        ('application/json;charset="UTF-8"', JSON),
        ("application/json; charset=us-ascii; x=1", JSON),
        ("application/json; charset=utf8", JSON),
        ("application/json; boundary=x", JSON),
    ],
)
def test_a_kind_that_is_known_is_taken_in_any_spelling(given: str | None, expected: str | None) -> None:
    headers = [] if given is None else [("content-type", given)]
    assert media_type(_request(headers=headers), {JSON, "text/plain"}) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("text/html", "Content-Type: 'text/html' given, expected one of application/json, text/plain"),
        ("", "Content-Type: '' given, expected one of application/json, text/plain"),
        ("text/plain; charset=latin-1", "Content-Type: charset 'latin-1' given, expected utf-8"),
    ],
)
def test_another_kind_is_refused_with_those_that_are_taken(given: str, said: str) -> None:
    with pytest.raises(ProblemError) as caught:
        media_type(_request(headers=[("content-type", given)]), {"text/plain", JSON})
    assert (caught.value.status, caught.value.code, str(caught.value)) == (415, "wrong-content-type", said)


def test_json_is_known_by_how_it_begins() -> None:
    for body in (b"{}", b"[1]", b"  \n\t\r{", b"\xef\xbb\xbf {", b" " * 1023 + b"{"):
        assert looks_like_json(body), body[:10]
    for body in (b"", b"run: x", b'"text"', b" ", b" " * 1024 + b"{", b"x{"):
        assert not looks_like_json(body), body[:10]


def test_a_form_is_read_from_json_only() -> None:
    form: Form[dict[str, int]] = Form(dict[str, int], {"": "an object of numbers"}, {})
    assert asyncio.run(read_form(_request(b'{"a": 1}'), form)) == {"a": 1}
    with pytest.raises(InputError, match="body: not JSON, expected an object of numbers"):
        asyncio.run(read_form(_request(b"a: 1"), form))
    with pytest.raises(ProblemError, match="text/plain"):
        asyncio.run(read_form(_request(b'{"a": 1}', headers=[("content-type", "text/plain")]), form))
    for empty in (b"", b"  \n"):
        with pytest.raises(InputError) as caught:
            asyncio.run(read_form(_request(empty), form))
        assert "not JSON," not in str(caught.value)


def test_yaml_may_be_an_eighth_as_long_as_json() -> None:
    refuse_long_yaml(bytes(128 * 1024))
    with pytest.raises(ProblemError, match="larger than 128 KiB, the most that is taken in YAML; send JSON") as caught:
        refuse_long_yaml(bytes(128 * 1024 + 1))
    assert caught.value.status == 413
