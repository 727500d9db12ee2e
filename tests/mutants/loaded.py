"""A process that has loaded Fairway and collected the tests of many files: every run of some tests is a fork of it.

Loading takes seconds, a small test takes milliseconds. What a run changes, it changes for itself alone.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.apart import PYTEST
from tests.mutants.changes import ROOT

PLAIN = ("-W", "ignore::RuntimeWarning")  # what compiled code divides by zero without a word, plain Python warns of
_PDEATHSIG = 1  # prctl(2): a signal when the parent ends
Watch = Callable[[pytest.TestReport], None]


class Loaded:
    """The pytest plugin that hands the tests over to `work`, once they are collected."""

    def __init__(self, work: Callable[[Loaded], None]) -> None:
        self._work = work
        self._session: pytest.Session | None = None
        self.items: dict[str, pytest.Item] = {}
        self.began: Callable[[str], None] = lambda _: None
        self.reported: Watch = lambda _: None
        self.ended: Callable[[str], None] = lambda _: None

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Let a property that fails not be shrunk to its smallest case."""
        from hypothesis import Phase, settings  # noqa: PLC0415 (our own settings are loaded by tests/conftest.py)

        settings.register_profile("mutants", settings.get_profile("fairway"), phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Work in place of running the tests one after another."""
        self._session = session
        self.items = {item.nodeid: item for item in session.items}
        self._work(self)
        return True

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self.began(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test was set up, called or cleaned up after."""
        self.reported(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test has ended."""
        self.ended(nodeid)

    def run(self, tests: Sequence[str], goes_on: Callable[[], bool]) -> bool:
        """Run these tests, in a fork of this process, while `goes_on`; whether all of them passed."""
        session = self._session
        assert session is not None
        session.testsfailed = 0
        items = [self.items[test] for test in tests if test in self.items]
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if not goes_on():
                with suppress(BaseException):
                    session._setupstate.teardown_exact(None)
                break
        return not session.testsfailed


@contextmanager
def results_of(
    files: Sequence[str],
    source: Path,
    compiled: bool,
    options: Sequence[str],
    scratch: Path,
    work: Callable[[Loaded, Callable[[Any], None]], None],
) -> Iterator[Iterator[Any]]:
    """What `work` says, in a process of its own that has collected the tests of these files with this source."""
    reading, writing = os.pipe()
    log = scratch / f"{os.urandom(4).hex()}.log"
    pid = os.fork()
    if not pid:
        code = 98
        try:
            ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.close(reading)
            os.set_inheritable(writing, False)
            with log.open("wb") as output:
                for stream in (1, 2):
                    os.dup2(output.fileno(), stream)
            os.chdir(ROOT)
            os.environ["PYTHONPATH"] = str(source)
            if not compiled:
                os.environ["FAIRWAY_COMPILED"] = "no"
            sys.path.insert(0, str(source))

            def say(told: Any) -> None:
                os.write(writing, json.dumps(told).encode() + b"\n")

            plugin = Loaded(lambda loaded: work(loaded, say))
            temporary = f"--basetemp={scratch / 't'}"
            arguments = [*PYTEST, "--tb=short", temporary, *(() if compiled else PLAIN), *options]
            code = int(pytest.main([*arguments, *files], plugins=[plugin]))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    try:
        with os.fdopen(reading) as lines:
            yield map(json.loads, lines)
        _, status = os.waitpid(pid, 0)
        pid = 0
        if os.waitstatus_to_exitcode(status) not in {
            0,
            pytest.ExitCode.TESTS_FAILED,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        }:
            raise RuntimeError(f"tests could not be run: {log.read_text(errors='replace')[-2000:]}")
    finally:
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
