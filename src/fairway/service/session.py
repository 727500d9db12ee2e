"""How a browser stays logged in: its token in two halves, one in a cookie and one with the page.

A cookie alone would be worth too much: browsers send those of 127.0.0.1 to every port, so that any server of another
user of this machine would get it. So the token is split like a one-time pad: the page keeps a random key, and the
cookie holds the token combined with it. Either alone says nothing of the token. Scripts cannot read the cookie
(HttpOnly), pages of other sites cannot have it sent (SameSite=Strict), and neither they nor other ports have the key,
which the page sends in a header of its own. The server keeps nothing: a session ends with its token, and outlives a
restart of the controller.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

KEY_HEADER = "Fairway-Key"

_PREFIX = "fairway_session_"
_LONGEST = 1024


def split(secret: str) -> tuple[str, str]:
    """A token as what goes into the cookie and the key that the page keeps."""
    given = secret.encode("utf-8", "surrogatepass")
    key = secrets.token_bytes(len(given))
    return _written(_combined(given, key)), _written(key)


def joined(cookie: str, key: str) -> str | None:
    """The token of both halves; None if they do not belong together."""
    try:
        first, second = _read(cookie), _read(key)
        return _combined(first, second).decode() if first and len(first) == len(second) else None
    except (ValueError, binascii.Error):
        return None


def secret_in(headers: Headers) -> str | None:
    """The token that a browser's request comes with; None if there is none."""
    key, cookies = headers.get(KEY_HEADER), headers.get("cookie")
    if key is None or cookies is None or len(key) > _LONGEST:
        return None
    try:
        found = SimpleCookie(cookies).get(cookie_name(headers))
    except CookieError:
        return None
    return None if found is None or len(found.value) > _LONGEST else joined(found.value, key)


def cookie_name(headers: Headers) -> str:
    """The cookie of this server: those of all ports of a host are in one place, so the port is a part of the name."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"{_PREFIX}{port if port.isascii() and port.isdecimal() else 'default'}"


def keep(response: Response, request: Request, cookie: str) -> None:
    """Let the browser keep its half until it is closed."""
    secure = request.url.scheme == "https"
    response.set_cookie(cookie_name(request.headers), cookie, path="/", httponly=True, samesite="strict", secure=secure)


def forget(response: Response, request: Request) -> None:
    """Let the browser forget its half."""
    secure = request.url.scheme == "https"
    response.delete_cookie(cookie_name(request.headers), path="/", httponly=True, samesite="strict", secure=secure)


def _combined(first: bytes, second: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(first, second, strict=True))


def _written(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _read(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
