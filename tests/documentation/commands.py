"""Runs the commands of a page, or sees that they and their options exist.

Commands of Fairway run in this process, which saves the seconds that each would take to start; servers, and what needs
a shell, run as processes of their own. What would take long is made smaller: fewer jobs, fewer requests, less time.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from fairway.cli.main import app
from tests.documentation.blocks import ROOT

_SHELL = re.compile(r"[|<>;]|\$\(|^[A-Z_]+=")
_PATIENCE = 300.0
_JOBS = 12
_REQUESTS = "30"
_LESS = {
    "training": ("--processes", "1"),
    "serving": ("--processes", "1"),
    "sweep": ("--processes", "1"),
    "reproduce": ("--quick", "--processes", "1"),
    "profile": ("--repeats", "1", "--quiet"),
    "top": ("--once",),
}
"""What is added to a command so that it is soon done."""
_LONG = ("benchmarks.", "fairway.simtest")
"""Modules that run for minutes, and have tests of their own: what is asked of them has to exist."""


def smaller(words: list[str]) -> list[str]:
    """The same command with less to do, in one process: every option, policy and scheduler is still there."""
    words = [re.sub(r"\bjobs=\d+", f"jobs={_JOBS}", word) for word in words]
    words = ["4:8" if before == "--window" else word for before, word in zip(["", *words], words, strict=False)]
    command = words[1] if words[1] != "simulate" else words[2]
    if command == "sweep":
        words = [re.sub(r"^(\d+,\d+)(,\d+)+$", r"\1", word) for word in words]
    if command == "serving" and "esg-apps" in words:
        words += ["--warmup", "1s", "--duration", "3s"]
    elif command == "serving" and "--requests" in words:
        words[words.index("--requests") + 1] = _REQUESTS
    elif command == "serving":
        words += ["--requests", _REQUESTS]
    return [*words, *_LESS.get(command, ())]


def check_options(line: str) -> None:
    """Raise if the command or one of its options does not exist, or an option's value is of the wrong type."""
    words = shlex.split(line, comments=True)
    while "=" in words[0] and words[0].partition("=")[0].isupper():
        words = words[1:]
    program = words[0].rpartition("/")[2]
    if program == "fairway":
        _check_fairway(words[1:])
    elif program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert not {word for word in words[1:] if "=" not in word} - set(targets), f"{line}: no such target"
    elif program in {"python", "python3"} and words[1] == "-m":
        _check_module(words[2], words[3:])
    else:
        assert program in {"curl", "pip", "uvx"}, f"{line}: nothing is known of {program}"


def _check_fairway(words: list[str]) -> None:
    command: Any = get_command(app)
    context = command.make_context("fairway", [words[0]], resilient_parsing=True)
    while words and hasattr(command, "get_command"):
        command = command.get_command(context, words[0])
        assert command is not None, f"fairway has no command {words[0]}"
        words = words[1:]
    with command.make_context(command.name, list(words)):
        pass


def _check_module(name: str, words: list[str]) -> None:
    importlib.import_module(name.partition(".")[0])
    printed = io.StringIO()
    arguments, sys.argv = sys.argv, [name, "--help"]
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            runpy.run_module(name, run_name="__main__", alter_sys=False)
    finally:
        sys.argv = arguments
    for word in words:
        assert not word.startswith("--") or word in printed.getvalue(), f"{name} has no option {word}"


class Shell:
    """Runs lines in a directory as a reader would; servers that are started there answer until it is left."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._replaced: dict[str, str] = {"~/.fairway": os.environ["FAIRWAY_HOME"], ".venv/bin/": ""}
        self._servers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.terminate()
        for server in self._servers:
            server.wait(_PATIENCE)

    def replace(self, shown: str, real: str) -> None:
        """What a page shows, such as an address, and what it is here."""
        self._replaced[shown] = real

    def real(self, text: str) -> str:
        """A text of the page with what it shows replaced by what there is."""
        for shown, real in self._replaced.items():
            text = text.replace(shown, real)
        return text

    def run(self, line: str) -> None:
        """Run one line, and raise if it fails."""
        line = self.real(line)
        words = shlex.split(line, comments=True)
        if words[0] == "make" or (words[:2] == ["python", "-m"] and words[2].startswith(_LONG)):
            check_options(line)
        elif words[:2] == ["fairway", "up"]:
            self._up(words)
        elif words[:2] == ["fairway", "serve"]:
            self._serve(words)
        elif words[0] == "fairway" and not _SHELL.search(line) and "--" not in words:
            result = CliRunner().invoke(app, smaller(words)[1:] if len(words) > 1 else [])
            if result.exit_code != 0:
                raise AssertionError(f"{line}\n{result.output}") from result.exception
        else:
            self._in_bash(line)

    def _in_bash(self, line: str) -> None:
        done = subprocess.run(
            ["bash", "-c", line], cwd=self._directory, capture_output=True, text=True, check=False, timeout=_PATIENCE
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"

    def _up(self, words: list[str]) -> None:
        self._in_bash("fairway down >/dev/null 2>&1 || true")  # a page may show several ways to start it
        detached = [*words, *([] if "--detach" in words else ["--detach"]), "--port", "0"]
        self._in_bash(shlex.join(detached))
        address = (Path(os.environ["FAIRWAY_HOME"]) / "address").read_text(encoding="utf-8").strip()
        self.replace("http://127.0.0.1:8642", address)

    def _serve(self, words: list[str]) -> None:
        for server in self._servers:  # the port and the memory of the one before are free
            server.terminate()
            server.wait(_PATIENCE)
        self._servers.clear()
        directory = self._directory / "served"
        log = self._directory / "serve.log"
        with log.open("wb") as messages:
            command = [*words, "--port", "0", "--directory", str(directory)]
            process = subprocess.Popen(command, cwd=self._directory, stdout=messages, stderr=subprocess.STDOUT)
        self._servers.append(process)
        until = time.monotonic() + _PATIENCE
        while (found := re.search(r" at (http\S+)\n", log.read_text(encoding="utf-8"))) is None:
            assert process.poll() is None, f"{shlex.join(words)}\n{log.read_text(encoding='utf-8')}"
            assert time.monotonic() < until, f"{shlex.join(words)}: it does not answer"
            time.sleep(0.05)
        self.replace("http://127.0.0.1:8643", found[1])
        self.replace("/tmp/fairway-serve-k3v9x2aq", str(directory))
