"""Brings the ranks of a gang on several nodes to agree after which step they save or stop (`fairway.live.job.gang`).

It lives in the keeper of the gang's first part, which outlives the agent and the controller: should it end, the gang
ends, too. It listens at one address; whoever connects has to show within seconds that it is a rank which knows the
secret of the run (`fairway.live.job.remote_gang`). It has no thread: the keeper lets it serve while it waits, also for
ranks of other nodes that have more to do than its own.
"""

from __future__ import annotations

import hmac
import os
import select
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from fairway.live.job.gang import agree, cells_of
from fairway.live.job.remote_gang import ANSWER, CHALLENGE_BYTES, DEEDS, PROOF, QUESTION, SAVE, STOP, proof_of

_PROVE_SECONDS = 5.0
_LATE_SECONDS = 600.0
"""How much later than the others a rank may begin, such as after a setup that takes longer on its node."""

_MOST_STRANGERS = 64
_MOST_AHEAD = 1_000_000


@dataclass(slots=True, eq=False)
class _Caller:
    """A connection: a rank once it has shown that it is one, a stranger before."""

    socket: socket.socket
    challenge: bytes
    since: float
    rank: int | None = None
    unread: bytearray = field(default_factory=bytearray)


class AgreementServer:
    """The server of one gang of so many `ranks`."""

    def __init__(self, address: str, port: int, secret: str, ranks: int) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listening = socket.create_server((address.strip("[]"), port), family=family, backlog=ranks)
        self._listening.setblocking(False)
        self._secret, self._ranks = secret, ranks
        self._cells = [0] * cells_of(ranks)
        self._callers: dict[int, _Caller] = {}
        self._seen: set[int] = set()
        self._last_seen = 0.0

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._listening.getsockname()[1]
        return port

    def serve(self, seconds: float, *, until: int) -> None:
        """Answer ranks for so long, or until a descriptor can be read."""
        deadline = time.monotonic() + seconds
        while True:
            self._refuse_the_slow()
            wait = max(deadline - time.monotonic(), 0.0)
            listening = self._listening.fileno()
            ready, _, _ = select.select([until, listening, *self._callers], [], [], wait)
            if listening in ready:
                self._let_in()
            for number in ready:
                if number in self._callers:
                    self._hear(self._callers[number])
            if until in ready or time.monotonic() >= deadline:
                return

    @property
    def is_needed(self) -> bool:
        """Whether ranks are connected, or will be; one that does not come within ten minutes is not waited for."""
        if any(caller.rank is not None for caller in self._callers.values()):
            return True
        return 0 < len(self._seen) < self._ranks and time.monotonic() - self._last_seen < _LATE_SECONDS

    def close(self) -> None:
        """Serve no more."""
        self._listening.close()
        self._drop(list(self._callers.values()))

    def _let_in(self) -> None:
        with suppress(OSError):
            connection, _ = self._listening.accept()
            connection.setblocking(False)
            caller = _Caller(connection, os.urandom(CHALLENGE_BYTES), time.monotonic())
            if sum(one.rank is None for one in self._callers.values()) >= _MOST_STRANGERS:
                connection.close()
                return
            self._callers[connection.fileno()] = caller
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._send(caller, caller.challenge)

    def _refuse_the_slow(self) -> None:
        now = time.monotonic()
        self._drop([one for one in self._callers.values() if one.rank is None and now - one.since > _PROVE_SECONDS])

    def _drop(self, callers: Iterable[_Caller]) -> None:
        for one in callers:
            self._callers.pop(one.socket.fileno(), None)
            one.socket.close()

    def _hear(self, caller: _Caller) -> None:
        try:
            content = caller.socket.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            content = b""
        caller.unread += content
        if not content or not self._understood(caller):
            self._drop([caller])

    def _understood(self, caller: _Caller) -> bool:
        """Take in what a caller has said; False if it is none that may ask, or makes no sense."""
        if caller.rank is None:
            if len(caller.unread) < PROOF.size:
                return True
            code, rank = PROOF.unpack_from(caller.unread)
            if not hmac.compare_digest(code, proof_of(self._secret, caller.challenge)) or not 0 <= rank < self._ranks:
                return False
            caller.rank = rank
            self._seen.add(rank)
            self._last_seen = time.monotonic()
            del caller.unread[: PROOF.size]
        while len(caller.unread) >= QUESTION.size:
            done, ahead, wishes, rank = QUESTION.unpack_from(caller.unread)
            del caller.unread[: QUESTION.size]
            if rank != caller.rank or done < 0 or not 1 <= ahead <= _MOST_AHEAD:
                return False
            deed, until = agree(
                self._cells, self._ranks, rank, done, stop=bool(wishes & STOP), save=bool(wishes & SAVE), ahead=ahead
            )
            if not self._send(caller, ANSWER.pack(DEEDS.index(deed), until)):
                return False
        return True

    def _send(self, caller: _Caller, content: bytes) -> bool:
        """Send a few bytes; a caller that lets so few of them pile up is none that waits for its answers."""
        try:
            return caller.socket.send(content) == len(content)
        except OSError:
            return False
