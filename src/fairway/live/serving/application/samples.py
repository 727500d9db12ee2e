"""Inputs to measure a workflow with: from a file, from a function, or from the workflow itself."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairway.documents import shown
from fairway.errors import InputError
from fairway.import_path import imported
from fairway.live.serving.application.definition import ServedWorkflow

_MOST_SAMPLES = 64


def samples_of(served: ServedWorkflow, *, file: Path | None = None, path: str | None = None) -> list[dict[str, Any]]:
    """Payloads of the workflow: of a file, of the function at an import path, or of the function that it names itself.

    A file of JSON holds one object of inputs by name, or a list of such; any other file is the one input itself.
    """
    if file is not None:
        return _checked(served, _of_file(served, file), str(file))
    if path is not None:
        return _checked(served, _made(imported(path), path), path)
    if served.recording.samples is None:
        raise InputError(
            f"workflow '{served.name}': what should it be measured with? Give --input FILE or --sample "
            "module:function, or samples=function in @fairway.workflow"
        )
    return _checked(served, _made(served.recording.samples, "samples"), f"workflow '{served.name}': samples")


def _of_file(served: ServedWorkflow, file: Path) -> list[Any]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}; name a file with an input") from None
    if file.suffix.lower() == ".json":
        try:
            document = json.loads(content)
        except ValueError as error:
            raise InputError(f"{file}: not valid JSON: {error}; correct it") from None
        return document if isinstance(document, list) else [document]
    needed = [name for name in served.inputs if name not in served.defaults]
    if len(needed) != 1:
        names = ", ".join(served.inputs) or "none"
        raise InputError(
            f"{file}: one file given, but workflow '{served.name}' has these inputs: {names}; give them by name in a "
            "file that ends in .json"
        )
    return [{needed[0]: content.decode() if served.input_types.get(needed[0]) is str else content}]


def _made(function: Any, where: str) -> list[Any]:
    if not callable(function):
        raise InputError(f"{where}: {shown(function)} given, expected a function that returns inputs by name")
    try:
        made = function()
        return [made] if isinstance(made, Mapping) else list(itertools.islice(made, _MOST_SAMPLES))
    except Exception as error:
        raise InputError(f"{where}: the function that makes inputs raised {type(error).__name__}: {error}") from error


def _checked(served: ServedWorkflow, samples: Sequence[Any], where: str) -> list[dict[str, Any]]:
    if not samples:
        raise InputError(f"{where}: no inputs, expected at least one")
    for sample in samples:
        if not isinstance(sample, Mapping):
            raise InputError(f"{where}: {shown(sample)} given, expected an object of inputs by name")
        try:
            served.payload(sample)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    return [dict(sample) for sample in samples]
