"""Draws a workflow as a Mermaid flowchart, which many tools render where they find it in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from fairway.workflows.model import ANY, Stage


def mermaid(stages: Sequence[Stage], edges: Sequence[tuple[str, str]]) -> str:
    """A box for each stage with its models and its time, and an arrow for each edge."""
    numbers = {stage.name: number for number, stage in enumerate(stages)}
    boxes = [f'    s{number}["{_label(stage)}"]' for number, stage in enumerate(stages)]
    arrows = [f"    s{numbers[source]} --> s{numbers[target]}" for source, target in edges]
    return "\n".join(["flowchart LR", *boxes, *arrows]) + "\n"


def _label(stage: Stage) -> str:
    return "<br/>".join(
        part for part in (_escaped(stage.name), _escaped(", ".join(stage.models)), _times(stage)) if part
    )


def _times(stage: Stage) -> str:
    """The time of a single request, by accelerator type where it depends on that."""
    times = {accelerator: next(iter(sizes.values())) for accelerator, sizes in stage.seconds.items()}
    if list(times) == [ANY]:
        return _duration(times[ANY])
    return ", ".join(f"{_escaped(accelerator)} {_duration(seconds)}" for accelerator, seconds in times.items())


def _duration(seconds: float) -> str:
    return f"{1000 * seconds:.4g} ms" if seconds < 1 else f"{seconds:.4g} s"


def _escaped(text: str) -> str:
    """The text with what means something to Mermaid or HTML written as its character number."""
    return "".join(char if char.isalnum() or char in " -_.,:/()" else f"#{ord(char)};" for char in text)
