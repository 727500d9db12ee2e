"""How two ends of a connection show each other that they know a secret, without sending it.

The caller sends 32 random bytes; the listener answers with 32 of its own, and with a code (HMAC-SHA256 under the
secret) over both; the caller checks it, and sends its own code over both. The two codes differ by who made them, so
that neither can be sent back. Bytes in, bytes out: the sockets are `guarded_channel`'s.
"""

from __future__ import annotations

import hashlib
import hmac

from fairway.live.serving.seams.transport import WireError

NONCE_BYTES = 32
_HELLO = b"FwT1"
_CODE_BYTES = hashlib.sha256().digest_size
_CALLER, _LISTENER = b"caller", b"listener"


class Handshake:
    """One end of it; `nonce` are random bytes that were never used before."""

    def __init__(self, secret: bytes, nonce: bytes, *, is_caller: bool) -> None:
        self._secret, self._nonce, self._is_caller = secret, nonce, is_caller
        self._theirs = b""
        self.is_done = False

    def first(self) -> bytes:
        """What this end says unasked."""
        return _HELLO + self._nonce if self._is_caller else b""

    @property
    def wanted(self) -> int:
        """How many bytes this end has to get next."""
        if self._is_caller:
            return NONCE_BYTES + _CODE_BYTES
        return _CODE_BYTES if self._theirs else len(_HELLO) + NONCE_BYTES

    def take(self, shown: bytes) -> bytes:
        """What to say to so many bytes as were wanted; raises `WireError` if the other end does not know the secret."""
        if self._is_caller:
            theirs, code = shown[:NONCE_BYTES], shown[NONCE_BYTES:]
            self._check(code, _LISTENER, self._nonce, theirs)
            self.is_done = True
            return self._code(_CALLER, self._nonce, theirs)
        if not self._theirs:
            if not shown.startswith(_HELLO):
                raise WireError(f"{shown[:16]!r} given, expected a process of this application")
            self._theirs = shown[len(_HELLO) :]
            return self._nonce + self._code(_LISTENER, self._theirs, self._nonce)
        self._check(shown, _CALLER, self._theirs, self._nonce)
        self.is_done = True
        return b""

    def _check(self, code: bytes, who: bytes, callers: bytes, listeners: bytes) -> None:
        if not hmac.compare_digest(code, self._code(who, callers, listeners)):
            raise WireError(f"the {who.decode()} of a connection does not know the secret of this application")

    def _code(self, who: bytes, callers: bytes, listeners: bytes) -> bytes:
        return hmac.digest(self._secret, who + callers + listeners, "sha256")
