"""A rank of a gang on several nodes: it agrees with the others over the network, at the keeper of the first part.

The server (`agreement_server` of the agent) sends sixteen bytes, to which a rank answers with a code made of them
and the secret, and with its number. From then on each question is answered by what to do next, and up to which step the
rank need not ask again: it writes down as many steps ahead as it does in about 20 ms, so that fast steps do not each
wait for the network. A rank that cannot reach the server for a minute ends with an error: it might go on alone
otherwise, while the others have stopped. Only small modules of the standard library are imported.
"""

from __future__ import annotations

import hmac
import socket
import time
from struct import Struct

from fairway.back_off import BackOff
from fairway.live.job.agreement import Next

CHALLENGE_BYTES = 16
PROOF = Struct("=32sq")
"""What a rank answers first: its code, and its number."""

QUESTION = Struct("=qqBq")
"""The steps done, how many it would like to write down ahead, what it would like (1 stop, 2 save), and its number."""

ANSWER = Struct("=Bq")
"""What to do (an index of `DEEDS`), and up to which step the rank need not ask again."""

DEEDS: tuple[Next, ...] = ("step", "save", "stop")
STOP, SAVE = 1, 2

_AHEAD_SECONDS = 0.02
_MOST_AHEAD = 1000
_PATIENCE_SECONDS, _CALL_SECONDS = 60.0, 10.0
_BACK_OFF = BackOff(0.05, 1.0)


class GangApartError(RuntimeError):
    """The ranks of a gang cannot reach each other."""


def proof_of(secret: str, challenge: bytes) -> bytes:
    """What shows that a rank knows the secret."""
    return hmac.digest(secret.encode(), challenge, "sha256")


class RemoteGang:
    """One rank's view of a gang on several nodes; `where` is `HOST:PORT` of the server."""

    def __init__(self, where: str, secret: str, rank: int, *, patience: float = _PATIENCE_SECONDS) -> None:
        host, _, port = where.rpartition(":")
        self._address, self._secret, self._rank = (host.strip("[]"), int(port)), secret, rank
        self._patience = patience
        self._socket: socket.socket | None = None
        self._until = -1
        self._asked: tuple[int, float] | None = None

    def next(self, done: int, *, stop: bool, save: bool) -> Next:
        """As all have agreed, or now agree."""
        if done < self._until and not (stop or save):
            return "step"
        question = QUESTION.pack(done, self._ahead(done), STOP * stop | SAVE * save, self._rank)
        answer: tuple[int, int] = ANSWER.unpack(self._answer_to(question))
        self._until = answer[1]
        return DEEDS[answer[0]]

    def _ahead(self, done: int) -> int:
        """As many steps as are done until one would notice, going by those since the last question."""
        now, before = time.monotonic(), self._asked
        self._asked = done, now
        if before is None or done <= before[0]:
            return 1
        seconds = (now - before[1]) / (done - before[0])
        return max(1, min(_MOST_AHEAD, int(_AHEAD_SECONDS / max(seconds, 1e-9))))

    def _answer_to(self, question: bytes) -> bytes:
        deadline, failures = time.monotonic() + self._patience, 0
        while True:
            try:
                connection = self._connected()
                connection.sendall(question)
                return _received(connection, ANSWER.size)
            except OSError as error:
                self.close()
                if time.monotonic() >= deadline:
                    host, port = self._address
                    raise GangApartError(
                        f"rank {self._rank} has not reached its gang at {host}:{port} for {self._patience:g} s "
                        f"({error}); the nodes of a gang have to reach each other"
                    ) from None
            failures += 1
            time.sleep(_BACK_OFF.seconds(failures))

    def _connected(self) -> socket.socket:
        if self._socket is None:
            connection = self._socket = socket.create_connection(self._address, _CALL_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(PROOF.pack(proof_of(self._secret, _received(connection, CHALLENGE_BYTES)), self._rank))
        return self._socket

    def close(self) -> None:
        """End the connection; the next question makes another one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _received(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise ConnectionError("the connection was closed")
        content += part
    return content
