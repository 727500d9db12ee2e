"""The scenario of Compass's evaluation: four workflows with eight models of 20.8 GB, on GPUs with room for 14 GB.

Sizes and times are those of the authors' simulator: Tesla T4 with 14,000,000 KB for models, a 100 Gb/s network. As
there, a model that has to go is copied back to the host, although it has not changed.
"""

from __future__ import annotations

from fairway.place.fleet import Worker
from fairway.sim.scenario import Scenario
from fairway.workflows import Model, Stage, Workflow

KILOBYTE = 1024
MEMORY_BYTES = 14_000_000 * KILOBYTE
WORKERS = 5

_GIGABYTES = {"opt": 5.72, "marian": 0.8, "mt5": 2.0, "nli": 2.14, "vit": 1.7, "tts": 2.7, "detr": 1.8, "depth": 3.9}
_MODELS = {name: Model(name, round(size * 1e6) * KILOBYTE) for name, size in _GIGABYTES.items()}


def compass_edge() -> Scenario:
    """Five workers; requests ask for each workflow equally often."""
    return Scenario(
        name="compass-edge",
        workflows=(_translation(), _question_answering(), _image_to_sound(), _perception()),
        workers=tuple(Worker(f"w{number}", MEMORY_BYTES, "t4") for number in range(WORKERS)),
        eviction_copies=True,
    )


def _translation() -> Workflow:
    return _workflow(
        "translation",
        [
            _stage("draft", "opt", 1, 2, 561),
            _stage("french", "marian", 2, 2, 441),
            _stage("chinese", "mt5", 2, 2, 778),
            _stage("japanese", "mt5", 2, 2, 803),
            _stage("collect", None, 2, 2, 1),
        ],
        [
            *(("draft", language) for language in ("french", "chinese", "japanese")),
            *((language, "collect") for language in ("french", "chinese", "japanese")),
        ],
    )


def _question_answering() -> Workflow:
    return _workflow(
        "question answering",
        [_stage("answer", "opt", 1, 2, 560), _stage("classify", "nli", 1, 1, 27)],
        [("answer", "classify")],
    )


def _image_to_sound() -> Workflow:
    return _workflow(
        "image to sound",
        [
            _stage("caption", "vit", 3000, 20, 283),
            _stage("classify", "nli", 20, 10, 26),
            _stage("speak", "tts", 20, 3000, 76),
            _stage("collect", None, 3000, 3000, 0.2),
        ],
        [("caption", "classify"), ("caption", "speak"), ("classify", "collect"), ("speak", "collect")],
    )


def _perception() -> Workflow:
    return _workflow(
        "3D perception",
        [
            _stage("receive", None, 3000, 3000, 0.6),
            _stage("objects", "detr", 3000, 3000, 178),
            _stage("depth", "depth", 3000, 3000, 147),
            _stage("combine", None, 3000, 3000, 104),
        ],
        [("receive", "objects"), ("receive", "depth"), ("objects", "combine"), ("depth", "combine")],
    )


def _stage(name: str, model: str | None, input_kb: int, output_kb: int, milliseconds: float) -> Stage:
    return Stage.of(
        name, milliseconds / 1000, model, input_bytes=input_kb * KILOBYTE, output_bytes=output_kb * KILOBYTE
    )


def _workflow(name: str, stages: list[Stage], edges: list[tuple[str, str]]) -> Workflow:
    used = {model: _MODELS[model] for stage in stages for model in stage.models}
    return Workflow(tuple(stages), tuple(edges), used, name)
