"""What was measured of an application, and the profile that is written of it.

A profile is a serving scenario: `fairway simulate serving --scenario` runs it, and `load_application` takes its times
and sizes. Numbers of threads are accelerator types: `cpu` is a worker whose stages may use one thread, `cpu-2` two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from fairway.configure.slices.parts import Slice, accelerator_on
from fairway.live.serving.application.definition import Application, accelerator_of
from fairway.live.serving.application.links import LOCAL_LINKS

_DIGITS = 4
"""Of a time; more would pretend to know it better than it repeats."""


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """What a model needs: bytes while it is there, and seconds to load.

    `working_bytes` are what runs of its stage need on top while they run; `left_bytes` what stays when it is let go.
    """

    bytes: int
    load_seconds: float
    working_bytes: int | None = None
    left_bytes: int = 0


@dataclass(frozen=True, slots=True)
class MeasuredStage:
    """Seconds by threads and batch size, and the bytes of an output.

    `on_parts` are seconds by batch size on parts of a worker, by thousandths of it.
    """

    seconds: Mapping[int, Mapping[int, float]]
    output_bytes: int
    on_parts: Mapping[int, Mapping[int, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MeasuredApplication:
    """Everything that was measured: models by name, stages by workflow and name.

    `pairs` has, by model, the factor by which its stages take longer beside each other model, in slices of one worker.
    """

    application: Application
    models: Mapping[str, MeasuredModel]
    stages: Mapping[str, Mapping[str, MeasuredStage]]
    input_bytes: Mapping[str, int]
    pairs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def document(self, *, workers: int = 1, memory_bytes: int | None = None) -> dict[str, Any]:
        """The profile as a scenario; without a memory size, each worker has room for all models."""
        everything = sum(model.bytes for model in self.models.values())
        threads = next(iter(next(iter(next(iter(self.stages.values())).values())).seconds))
        group = {
            "name": "worker",
            "count": workers,
            "memory_bytes": everything if memory_bytes is None else memory_bytes,
            "accelerator": accelerator_of(threads),
            "per_host": workers,
        }
        links = LOCAL_LINKS
        document = {
            "models": {
                name: {"bytes": model.bytes, "load_seconds": _rounded(model.load_seconds)}
                for name, model in self.models.items()
            },
            "workflows": {name: self._workflow(name) for name in self.application.workflows},
            "workers": [group],
            "links": {
                "network_latency": links.network_latency,
                "network_bandwidth": links.network_bandwidth,
                "to_device_bandwidth": links.to_device_bandwidth,
                "to_host_bandwidth": links.to_host_bandwidth,
                "copy_latency": links.copy_latency,
            },
        }
        if self.pairs:
            document["interference"] = {
                name: {other: _rounded(factor) for other, factor in beside.items()}
                for name, beside in self.pairs.items()
            }
        return document

    def _workflow(self, name: str) -> dict[str, Any]:
        served = self.application.workflows[name]
        stages = []
        for number, stage in enumerate(served.workflow.stages):
            measured = self.stages[name][stage.name]
            fields: dict[str, Any] = {"name": stage.name}
            if stage.models:
                fields["model"] = stage.models[0]
            first = accelerator_of(next(iter(measured.seconds)))
            ways = {accelerator_of(threads): times for threads, times in measured.seconds.items()}
            ways |= {accelerator_on(first, Slice(part)): times for part, times in measured.on_parts.items()}
            fields["seconds"] = {
                name: {batch: _rounded(seconds) for batch, seconds in times.items()} for name, times in ways.items()
            }
            if served.takes_input(number):
                before = served.workflow.predecessors[number]
                outputs = (self.stages[name][served.workflow.stages[each].name].output_bytes for each in before)
                fields["input_bytes"] = self.input_bytes[name] + sum(outputs)
            fields["output_bytes"] = measured.output_bytes
            stages.append(fields)
        document: dict[str, Any] = {"stages": stages, "edges": [list(edge) for edge in served.workflow.edges]}
        if served.slo_seconds is not None:
            document["slo_seconds"] = served.slo_seconds
        return document


def profile_text(document: Mapping[str, Any], about: str) -> str:
    """The profile as YAML, with a line on what it is in front."""
    content = yaml.safe_dump(dict(document), sort_keys=False, default_flow_style=None, width=160, allow_unicode=True)
    return f"# {about}\n{content}"


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.{_DIGITS}g}")
