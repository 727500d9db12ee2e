"""Pages to read and recordings to listen to, with the models of `examples.document_reading`: what the requests are.

Half of the requests bring a page, the others a recording; which and what is in it comes from a request's number. On
short pages, of two lines, stages take less time than their models do to load, as is usual with large models; on long
ones, of four lines, reading takes longer than loading.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from examples.document_reading.application import listen, read_document
from examples.document_reading.samples import SamplePage, draw_page
from examples.document_reading.speech import draw_recording
from fairway.live.serving.application.measurements import profile_text
from fairway.live.serving.application.profiling import ProfileOptions, Profiler

TARGET = "benchmarks._serving_live_documents:workflows"
WORKERS = 2

workflows = [read_document, listen]

_DIFFERENT = 32
"""Pages, and recordings: they are drawn once, before anything is measured."""


class Document:
    """One request, with a short page if it has one."""

    LINES, WIDTH, HEIGHT = 2, 320, 128
    NAME: ClassVar[str] = "benchmarks._serving_live_documents:Document"

    def __init__(self, number: int) -> None:
        self._which = number % _DIFFERENT
        self.is_sound = bool(number * 2654435761 >> 16 & 1)  # as if by chance, whatever the order of the numbers

    @property
    def workflow(self) -> str:
        return "listen" if self.is_sound else "read-document"

    @property
    def inputs(self) -> dict[str, Any]:
        return {"recording": recording(self._which)} if self.is_sound else {"image": self.page(self._which).image}

    def check(self, answer: Any) -> None:
        """Most words of the page were read; something was heard."""
        if self.is_sound:
            assert answer, "nothing was heard"
        else:
            words = self.page(self._which).words
            found = set(answer["text"].split())
            read = sum(word in found for word in words)
            assert read > len(words) / 2, f"{read} of {len(words)} words were read: {answer['text']}"

    @classmethod
    def page(cls, seed: int) -> SamplePage:
        return page(seed, cls.LINES, cls.WIDTH, cls.HEIGHT)


class LongDocument(Document):
    """One request, with a page as the example draws them, if it has one."""

    LINES, WIDTH, HEIGHT = 4, 544, 320
    NAME: ClassVar[str] = "benchmarks._serving_live_documents:LongDocument"


@cache
def page(seed: int, lines: int, width: int, height: int) -> SamplePage:
    return draw_page(seed, lines=lines, width=width, height=height)


@cache
def recording(seed: int) -> bytes:
    return draw_recording(seed)


class Profile(NamedTuple):
    """A measured profile: its file, and a worker's budget for models: room for any half of them, whichever."""

    file: Path
    budget: int
    models: int
    half: int


@contextmanager
def measured(kind: type[Document], repeats: int) -> Iterator[Profile]:
    """Measure the application with such requests; the file is there as long as the context."""
    profiler = Profiler(TARGET, ProfileOptions(batches=(1,), repeats=repeats, at_once=WORKERS))
    samples = {
        "read-document": [{"image": kind.page(seed).image} for seed in range(_DIFFERENT)],
        "listen": [{"recording": recording(seed)} for seed in range(_DIFFERENT)],
    }
    found = profiler.measure(samples)
    sizes = sorted(model.bytes for model in found.models.values())
    half = len(sizes) // 2
    budget = sum(sizes[-half:])
    document = found.document(workers=WORKERS, memory_bytes=budget)
    with tempfile.TemporaryDirectory(prefix="fairway-") as directory:
        file = Path(directory) / "profile.yaml"
        file.write_text(profile_text(document, "Measured for a benchmark."))
        yield Profile(file, budget, len(sizes), half)
