"""The program of a process that has a copy of one model, in a slice of a worker.

python -m fairway.live.serving.local.model_program SETTINGS MODEL DESCRIPTOR PARENT [GROUP ...]

It enters its control groups before it sees any of the author's code, loads the model, and runs what it is asked to over
the descriptor, one thing at a time. It ends with the worker that has started it. A stage that yields is asked for its
pieces one by one.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fairway.live.machine.containment import group_at
from fairway.live.serving.application.definition import Application
from fairway.live.serving.runtime.explanation import explained, kind_of, words_of
from fairway.live.serving.supervise.parent_process import end_with_parent
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.workflows.arguments import Arguments

_OOM_SCORE = "900"
"""More than that of its worker: if the machine is short of memory, the copy of a model goes first."""


def main(path: str, model: str, descriptor: str, parent: str, *groups: str) -> None:
    """Load the model, and run stages until the worker hangs up."""
    end_with_parent(int(parent))
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
    link = Connection(int(descriptor))
    group_at(groups).enter()
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    with suppress(EOFError, OSError):
        _say(link, "entered", os.getpid())
        link.recv_bytes()  # the processes in the group are bounded from here on
        _serve(link, ServingSettings.read(Path(path)), model)
    os._exit(0)  # what the author's code has left running is of no use any more


def _serve(link: Connection, settings: ServingSettings, name: str) -> None:
    try:
        application = settings.application()
        _say(link, "imported", None)
        link.recv_bytes()
        entry = application.models[name]
        model = entry.loader()
    except BaseException as error:  # the author's code may raise anything
        _say(link, "problem", (kind_of(error), words_of(error)))
        return
    _say(link, "loaded", None)
    while True:
        word, *content = pickle.loads(link.recv_bytes())
        if word == "close":
            if entry.unloader is not None:
                entry.unloader(model)
            return
        _run(link, application, model, *content)


def _run(link: Connection, application: Application, model: object, workflow: str, stage: int, packed: bytes) -> None:
    """Run a stage, and say what it has put out, or what it has raised."""
    served = application.workflows[workflow]
    try:
        batch: list[Arguments] = pickle.loads(packed)
        results = served.run(stage, model, batch)
        if not served.is_streaming(stage):
            _say(link, "done", results)
            return
    except BaseException as error:
        _say(link, "problem", _words(served.workflow.stages[stage].name, error))
        return
    _say(link, "pieces", None)
    _pieces(link, served.workflow.stages[stage].name, iter(results[0]))


def _pieces(link: Connection, stage: str, pieces: Iterator[Any]) -> None:
    """Say one piece each time that it is asked for, until there are no more, or no more are wanted."""
    while link.recv_bytes() == b"next":
        try:
            piece = next(pieces)
        except StopIteration:
            _say(link, "done", None)
            return
        except BaseException as error:
            _say(link, "problem", _words(stage, error))
            return
        _say(link, "piece", piece)
    getattr(pieces, "close", lambda: None)()


def _words(stage: str, error: BaseException) -> tuple[str, str]:
    explained(f"stage '{stage}' in its slice", error)  # the log has all of it
    return kind_of(error), words_of(error)


def _say(link: Connection, word: str, content: Any) -> None:
    try:
        said = pickle.dumps((word, content), protocol=5)
    except Exception as error:
        said = pickle.dumps(
            ("problem", (kind_of(error), f"the result cannot go to another process: {words_of(error)}"))
        )
    link.send_bytes(said)


if __name__ == "__main__":
    main(*sys.argv[1:])
