"""Measures every stage of an application over batch sizes and threads, each in a process of its own.

First the samples go through each workflow once, to know what every stage is called with; then each stage runs on that.
Several are measured at a time, if several workers will share the machine: its caches and its memory have to do for all
of them then, too. What is measured is in `measuring`, what comes of it in `measured`.
"""

from __future__ import annotations

import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

from fairway.configure.slices.parts import WHOLE, Slice
from fairway.errors import InputError
from fairway.live.serving.application.definition import Application, load_application
from fairway.live.serving.application.measurements import MeasuredApplication, MeasuredModel, MeasuredStage
from fairway.live.serving.application.measuring import Task
from fairway.live.serving.application.slice_profiling import OnParts, SliceProfiler
from fairway.live.serving.supervise.environment import stage_environment

Progress = Callable[[int, int, str], None]
"""Gets how many measurements are done, of how many, and what is measured now."""


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """What to measure: batch sizes, numbers of threads, and how often each input is repeated.

    `at_once` stages of one thread are measured at a time, fewer of more threads: as many as workers would run here.
    Beside that, every stage is measured on these `parts` of a worker of the first number of threads, and with `pairs`
    a stage of each model on the first part, beside one of each other model on the rest.
    """

    batches: tuple[int, ...] = (1, 2, 4, 8)
    threads: tuple[int, ...] = (1,)
    repeats: int = 5
    at_once: int = 1
    parts: tuple[Slice, ...] = ()
    pairs: bool = False

    def __post_init__(self) -> None:
        if self.pairs and not (self.parts and self.parts[0].thousandths < WHOLE):
            raise InputError("--pairs: given without a part of a worker that leaves some for another; add --slices 0.5")
        for name, values in (("batches", self.batches), ("threads", self.threads), ("repeats", (self.repeats,))):
            if not values or any(value < 1 for value in values) or len(set(values)) < len(values):
                given = ",".join(map(str, values)) or "nothing"
                raise InputError(f"--{name}: {given} given, expected different whole numbers of at least 1")


@dataclass
class Profiler:
    """Measures one application; `target` is its name for `load_application`."""

    target: str
    options: ProfileOptions = field(default_factory=ProfileOptions)
    progress: Progress = lambda _done, _all, _what: None
    _done: int = 0
    _telling: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.application: Application = load_application(self.target, memory_needed=False)

    def measure(self, samples: Mapping[str, Sequence[Mapping[str, Any]]]) -> MeasuredApplication:
        """Measure all workflows, with these inputs by workflow."""
        with tempfile.TemporaryDirectory(prefix="fairway-profile-") as directory:
            tasks, sizes, input_bytes = [], {}, {}
            for number, (name, served) in enumerate(self.application.workflows.items()):
                file = Path(directory) / f"{number}.pickle"
                file.write_bytes(pickle.dumps(list(samples[name]), protocol=5))
                task = Task(self.target, name, str(file.with_suffix(".answer")), str(file))
                collected = self._answer(task, f"{name}: samples")
                sizes[name], input_bytes[name] = collected["output_bytes"], collected["input_bytes"]
                tasks += [
                    replace(
                        task, answer=f"{file}-{stage}-{threads}.answer", stage=stage, threads=threads,
                        batches=self.options.batches, repeats=self.options.repeats,
                    )
                    for stage in range(len(served.workflow)) for threads in self.options.threads
                ]  # fmt: skip
            answers = dict(zip(tasks, self._answers(tasks), strict=True))
            on_parts, pairs = self._in_slices([task for task in tasks if task.threads == self.options.threads[0]])
        seconds: dict[tuple[str, int], dict[int, dict[int, float]]] = {}
        models: dict[str, list[MeasuredModel]] = {}
        for task, answer in answers.items():
            assert task.stage is not None
            times = {int(batch): time for batch, time in answer.pop("seconds").items()}
            seconds.setdefault((task.workflow, task.stage), {})[task.threads] = times
            for model in self.application.workflows[task.workflow].workflow.stages[task.stage].models[:1]:
                models.setdefault(model, []).append(MeasuredModel(**answer))
        stages = {
            name: {
                stage.name: MeasuredStage(seconds[name, number], sizes[name][number], on_parts.get((name, number), {}))
                for number, stage in enumerate(served.workflow.stages)
            }
            for name, served in self.application.workflows.items()
        }
        needed = {name: _together(each) for name, each in models.items()}
        return MeasuredApplication(self.application, needed, stages, input_bytes, pairs)

    @property
    def total(self) -> int:
        """How many measurements there are."""
        options, models = self.options, len(self._first_stages())
        ways = len(options.threads) + len(options.parts)
        alone = sum(1 + len(served.workflow) * ways for served in self.application.workflows.values())
        return alone + (2 * models * (models - 1) if options.pairs else 0)

    def _first_stages(self) -> dict[str, tuple[str, int]]:
        """By model, a workflow and a stage that runs it."""
        found: dict[str, tuple[str, int]] = {}
        for name, served in self.application.workflows.items():
            for number, stage in enumerate(served.workflow.stages):
                for model in stage.models[:1]:
                    found.setdefault(model, (name, number))
        return found

    def _in_slices(self, tasks: Sequence[Task]) -> tuple[OnParts, dict[str, dict[str, float]]]:
        """The times of stages on parts of a worker and, if that is asked for, what models cost each other."""
        options = self.options
        if not options.parts:
            return {}, {}
        of = {(task.workflow, task.stage): task for task in tasks}
        with SliceProfiler(self._measured, self._started) as slices:
            on_parts = slices.on_parts(tasks, options.parts)
            if not options.pairs:
                return on_parts, {}
            firsts = {model: of[place] for model, place in self._first_stages().items()}
            return on_parts, slices.pairs(firsts, options.parts[0])

    def _answers(self, tasks: Sequence[Task]) -> list[dict[str, Any]]:
        """Have processes do the tasks, as many at a time as their threads leave room for."""
        answers: dict[Task, dict[str, Any]] = {}
        for threads in self.options.threads:
            ours = [task for task in tasks if task.threads == threads]
            with ThreadPoolExecutor(max(1, self.options.at_once // threads)) as pool:
                try:
                    answers |= zip(ours, pool.map(self._measured, ours), strict=True)
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
        return [answers[task] for task in tasks]

    def _measured(self, task: Task, where: str = "") -> dict[str, Any]:
        assert task.stage is not None
        stage = self.application.workflows[task.workflow].workflow.stages[task.stage]
        many = f" with {task.threads} threads" if len(self.options.threads) > 1 else ""
        return self._answer(task, f"{task.workflow}: {stage.name}{where or many}")

    def _answer(self, task: Task, what: str) -> dict[str, Any]:
        """Have a process do the task."""
        self._tell(what, 0)
        Path(task.answer).unlink(missing_ok=True)
        process = self._started(task)
        try:
            _, said = process.communicate()
        except BaseException:
            process.kill()
            process.wait()
            raise
        if not Path(task.answer).exists():
            last = (said.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
            raise InputError(f"{what}: the process that measures ended with status {process.returncode}: {last}")
        answer: dict[str, Any] = json.loads(Path(task.answer).read_text(encoding="utf-8"))
        if "error" in answer:
            raise InputError(f"{what}: {answer['error']}; it must run before it can be measured")
        self._tell(what, 1)
        return answer

    @staticmethod
    def _started(task: Task) -> subprocess.Popen[bytes]:
        """A process that does a task."""
        path = Path(task.answer).with_suffix(".task")
        task.save(path)
        return subprocess.Popen(
            [sys.executable, "-m", "fairway.live.serving.application.measuring", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL if task.loops else subprocess.PIPE,
            env={
                **os.environ,
                **stage_environment(task.threads),
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
        )

    def _tell(self, what: str, more: int) -> None:
        with self._telling:
            self._done += more
            self.progress(self._done, self.total, what)


def _together(measured: Sequence[MeasuredModel]) -> MeasuredModel:
    """One model that was measured several times, with other stages or numbers of threads: the most that it needs."""
    working = [each.working_bytes for each in measured if each.working_bytes is not None]
    return MeasuredModel(
        bytes=max(each.bytes for each in measured),
        load_seconds=statistics.median(each.load_seconds for each in measured),
        working_bytes=max(working) if working else None,
        left_bytes=max(each.left_bytes for each in measured),
    )
