"""Runs pytest in a process of its own that has the large libraries loaded already.

Loading numpy, numba, SQLAlchemy, pydantic and FastAPI takes seconds, a small test takes milliseconds. So `warm_up`
loads them once, and every run is a fork of this process. Fairway itself is loaded by the fork, from the source that it
is given. A second process watches over each run: it ends the run after its time limit, and what the run left behind.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numba
import numpy as np

from tests.mutants.changes import ROOT, SOURCE

TOO_LONG = 70  # the exit code of a run that took longer than it may
# fmt: off
_LARGE = (
    "numba.np.ufunc", "scipy.optimize", "scipy.sparse", "scipy.linalg", "highspy", "rustworkx",
    "pydantic", "yaml", "sqlalchemy.dialects.sqlite", "psycopg", "fastapi", "uvicorn", "httpx", "prometheus_client",
    "typer.testing", "rich.table", "asyncio", "pytest", "xdist",
    "hypothesis.stateful", "schemathesis.pytest.plugin", "anyio.pytest_plugin",
)
# fmt: on
PYTEST = ("-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")  # for loaded libraries
_SUBREAPER = 36  # prctl(2): PR_SET_CHILD_SUBREAPER, orphans below become children of this process


def warm_up() -> None:
    """Load the libraries that are not Fairway's."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in _LARGE:
        with suppress(ImportError):
            importlib.import_module(name)
    numba.njit(lambda values: values.sum())(np.zeros(1))  # numba makes its tables of types when it first compiles
    gc.freeze()  # what is loaded now stays, and need not be looked through by every run
    loaded = [name for name in sys.modules if name.partition(".")[0] == "fairway"]
    assert not loaded, f"a library has loaded {loaded}: every run would test this instead of its own source"


@dataclass(frozen=True, slots=True)
class Run:
    """What runs apart: the source it tests, its time limits in seconds, and whether kernels are compiled.

    A loop without an end uses up its `processor_seconds` early; what waits for ever is ended after `seconds`.
    """

    work: Callable[[], int]
    source: Path
    seconds: float
    processor_seconds: float
    compiled: bool
    output: Path

    def start(self, environment: Mapping[str, str]) -> int:
        """Start it, and return the id of the process that ends with its exit code, or with TOO_LONG."""
        if watcher := os.fork():
            return watcher
        parent = os.getppid()
        try:
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
            worker = os.fork()
            if not worker:
                self._work(environment)
            for interruption in (signal.SIGINT, signal.SIGTERM):  # it ends with its parent, after clearing up
                signal.signal(interruption, signal.SIG_IGN)
            code = self._watch(worker, parent)
            _end_what_is_left()
            os._exit(code)
        finally:
            os._exit(99)

    def _work(self, environment: Mapping[str, str]) -> NoReturn:
        code = 98
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(self.processor_seconds), int(self.processor_seconds) + 5))
            with self.output.open("wb") as output:
                for stream in (1, 2):
                    os.dup2(output.fileno(), stream)
            os.chdir(ROOT)
            os.environ.update(environment)
            os.environ["PYTHONPATH"] = str(self.source)
            os.environ["PYTHONDONTWRITEBYTECODE"] = "" if self.source == SOURCE else "1"
            sys.dont_write_bytecode = self.source != SOURCE
            sys.path.insert(0, str(self.source))
            if not self.compiled:
                os.environ["FAIRWAY_COMPILED"] = "no"
            code = self.work()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _watch(self, worker: int, parent: int) -> int:
        ends = time.monotonic() + self.seconds
        while time.monotonic() < ends and os.getppid() == parent:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == worker:
                code = os.waitstatus_to_exitcode(status)
                return TOO_LONG if code == -signal.SIGXCPU else code & 0x7F
            if not pid:
                time.sleep(0.02)
        return TOO_LONG


def _end_what_is_left() -> None:
    """End every process below this one: also those that have gone into a session of their own."""
    while children := Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)
