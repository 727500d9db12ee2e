"""The four workflows of Compass's evaluation, with its numbers: gigabytes of 10⁶ KB, KB of 1024 bytes, ms."""

from __future__ import annotations

from fairway import Model, Stage, Workflow

KILOBYTE = 1024
GPU_MEMORY = 14_000_000 * KILOBYTE
"""Of a Tesla T4, what the authors leave to models."""

GIGABYTES = {"opt": 5.72, "marian": 0.8, "mt5": 2.0, "nli": 2.14, "vit": 1.7, "tts": 2.7, "detr": 1.8, "depth": 3.9}
MODELS = {name: Model(name, round(size * 1e6) * KILOBYTE) for name, size in GIGABYTES.items()}


def _workflow(name: str, tasks: list[tuple[str | None, float, float, float]], edges: list[tuple[int, int]]) -> Workflow:
    stages = [
        Stage.of(f"t{number}", ms / 1000, model, input_bytes=int(into * KILOBYTE), output_bytes=int(out * KILOBYTE))
        for number, (model, into, out, ms) in enumerate(tasks)
    ]
    return Workflow(tuple(stages), tuple((f"t{a}", f"t{b}") for a, b in edges), MODELS, name)


TRANSLATION = _workflow(
    "translation",
    [("opt", 1, 2, 561), ("marian", 2, 2, 441), ("mt5", 2, 2, 778), ("mt5", 2, 2, 803), (None, 2, 2, 1)],
    [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)],
)
QUESTION_ANSWERING = _workflow("question answering", [("opt", 1, 2, 560), ("nli", 1, 1, 27)], [(0, 1)])
IMAGE_TO_SOUND = _workflow(
    "image to sound",
    [("vit", 3000, 20, 283), ("nli", 20, 10, 26), ("tts", 20, 3000, 76), (None, 3000, 3000, 0.2)],
    [(0, 1), (0, 2), (1, 3), (2, 3)],
)
PERCEPTION = _workflow(
    "3D perception",
    [(None, 3000, 3000, 0.6), ("detr", 3000, 3000, 178), ("depth", 3000, 3000, 147), (None, 3000, 3000, 104)],
    [(0, 1), (0, 2), (1, 3), (2, 3)],
)
WORKFLOWS = (TRANSLATION, QUESTION_ANSWERING, IMAGE_TO_SOUND, PERCEPTION)
