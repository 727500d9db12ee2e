"""Ray as the supervisor has it: asked by way of a process that is started again whenever it has ended (`driver`).

With the raylet that it is connected to, or a minute after Ray's head, that process ends. What runs on the nodes does
not: the supervisor speaks with their keepers. Only what is new needs Ray, and waits for it.
"""

from __future__ import annotations

import itertools
import logging
import pickle
import subprocess
import tempfile
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from fairway.back_off import BackOff
from fairway.errors import FairwayError, InputError
from fairway.extras import require
from fairway.live.ray_cluster.address import refuse_old_ray, refuse_silent_address
from fairway.live.ray_cluster.client_process import end_client, ready_client, start_client
from fairway.live.ray_cluster.nodes import RayNode

_DRIVER = "fairway.live.serving.ray.driver"
_NAMESPACE = "fairway-serve"
_BACK_OFF = BackOff(0.5, 5.0)
_NODES_SECONDS = 60.0
_LOG = logging.getLogger(__name__)


class RayAwayError(FairwayError):
    """Ray is not there at this time, or went away before it had answered."""


class RayRefusedError(FairwayError):
    """What Ray was asked for cannot be, with the reason."""


class RayClient:
    """The Ray at an address; raises `InputError` if that cannot be used. Names of actors begin with the `prefix`.

    It `is_there` when it can be asked something. `came_back` is called in a thread of this object when it is again.
    """

    def __init__(self, address: str) -> None:
        require("ray")
        refuse_old_ray(version("ray"))
        self._address = address
        self.prefix = f"{uuid.uuid4().hex[:12]}-"
        self.came_back: Callable[[], None] = lambda: None
        self._numbers = itertools.count()
        self._pending: dict[int, Future[Any]] = {}
        self._lock = Lock()
        self._is_over = Event()
        self.is_there = False
        self._process = self._started()
        self.is_there = True
        self._thread = Thread(target=self._keep, name="fairway-ray", daemon=True)
        self._thread.start()

    def ask(self, question: str, *content: Any) -> Future[Any]:
        """Ask the driver something; the answer fails with `RayRefusedError`, or with `RayAwayError`."""
        future: Future[Any] = Future()
        with self._lock:
            if not self.is_there:
                future.set_exception(RayAwayError("Ray is away"))
                return future
            number = next(self._numbers)
            self._pending[number] = future
            assert self._process.stdin is not None
            with suppress(OSError):  # it has just ended, and with it all that is pending
                pickle.dump((number, question, content), self._process.stdin)
                self._process.stdin.flush()
        return future

    def nodes(self) -> list[RayNode]:
        """The nodes that live."""
        found: list[RayNode] = self.ask("nodes").result(_NODES_SECONDS)
        return found

    def close(self) -> None:
        """End the driver, and all actors with the prefix."""
        self._is_over.set()
        self._let_go()
        self._thread.join()

    def _started(self) -> subprocess.Popen[bytes]:
        """A driver that works."""
        refuse_silent_address(self._address)
        options = {"address": self._address, "namespace": _NAMESPACE, "prefix": self.prefix}
        with tempfile.NamedTemporaryFile(prefix="fairway-ray-") as log:
            process = start_client(_DRIVER, options, log.file)
            try:
                said = ready_client(process, self._address, Path(log.name))
            except BaseException:
                end_client(process)
                raise
        self._address = said["address"]  # where it is sought again, however it was found
        return process

    def _keep(self) -> None:
        """In a thread: take in answers, and have another driver when this one has ended."""
        while True:
            self._take_answers()
            self._let_go()
            end_client(self._process)
            if self._is_over.is_set():
                return
            _LOG.warning("Ray is away: what is served goes on, and nothing new can be started until it is back")
            failures = 0
            while not self._is_over.wait(_BACK_OFF.seconds(failures := failures + 1)):
                try:
                    self._process = self._started()
                except (InputError, OSError) as error:
                    _LOG.info("Ray is away: %s", error)
                    continue
                break
            with self._lock:
                self.is_there = not self._is_over.is_set()
            if not self.is_there:
                self._let_go()
                end_client(self._process)
                return
            _LOG.warning("Ray is back")
            self.came_back()

    def _take_answers(self) -> None:
        assert self._process.stdout is not None
        with suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                number, is_good, said = pickle.load(self._process.stdout)
                with self._lock:
                    future = self._pending.pop(number, None)
                if future is None:
                    continue
                if is_good:
                    future.set_result(said)
                else:
                    future.set_exception(RayRefusedError(said))

    def _let_go(self) -> None:
        """The driver has ended, or is to end: nothing more is asked of it."""
        assert self._process.stdin is not None
        with self._lock:
            self.is_there = False
            with suppress(OSError):
                self._process.stdin.close()
            pending, self._pending = self._pending, {}
        for future in pending.values():
            future.set_exception(RayAwayError("Ray has gone away"))
