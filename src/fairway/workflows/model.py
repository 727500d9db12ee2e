"""What a workflow is made of: models with their sizes, and stages with the time that each takes.

Units: seconds and bytes. How long a stage takes depends on the accelerator type and on the batch size; both may be left
out. `seconds` can be given as one number (any accelerator, one request at a time), as numbers by accelerator type, or
as numbers by batch size by accelerator type; it is kept in the last form, where `*` stands for any type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, ValidationError
from pydantic.dataclasses import dataclass

from fairway.documents import Bytes, Duration, Name, shown
from fairway.errors import InputError

ANY = "*"
"""Stands for every accelerator type that is not named."""

A_TIME = 'seconds >= 0, also by accelerator type and batch size, as in 0.5, {"t4": 0.5} or {"t4": {"1": 0.5, "4": 1.1}}'

_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
_MOST_SECONDS = 1e9


def _seconds(given: object) -> dict[str, dict[int, float]]:
    """The time by accelerator type and batch size, whichever way it was given."""
    if not isinstance(given, Mapping):
        return {ANY: {1: _time(given, "")}}
    if not given:
        raise InputError(f"no time on any accelerator given, expected {A_TIME}")
    table = {}
    for accelerator, times in given.items():
        if not isinstance(accelerator, str) or not accelerator:
            raise InputError(f"{shown(accelerator)} given as an accelerator type, expected its name, as in 't4'")
        if not isinstance(times, Mapping):
            table[accelerator] = {1: _time(times, f" for '{accelerator}'")}
            continue
        if not times:
            raise InputError(f"no time for '{accelerator}' given, expected {A_TIME}")
        sizes = {_batch(batch, accelerator): _time(time, f" for '{accelerator}'") for batch, time in times.items()}
        table[accelerator] = dict(sorted(sizes.items()))
    return table


def _time(given: object, where: str) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 0 <= float(given) <= _MOST_SECONDS:  # type: ignore[arg-type]
        raise InputError(f"{shown(given)} given{where}, expected {A_TIME}")
    return float(given)  # type: ignore[arg-type]


def _batch(given: object, accelerator: str) -> int:
    size = int(given) if isinstance(given, str) and given.isdecimal() else given
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise InputError(f"{shown(given)} given as a batch size for '{accelerator}', expected a whole number >= 1")
    return size


GivenSeconds = float | Mapping[str, float] | Mapping[str, Mapping[int, float]]
SecondsTable = Annotated[Mapping[str, Mapping[int, float]], BeforeValidator(_seconds)]


@dataclass(frozen=True, slots=True, config=_STRICT)
class Model:
    """The parameters of a model, which must lie in an accelerator's memory as a whole for a stage to use it.

    `load_seconds` is how long that takes where it was measured; None where it follows from the bytes and the link.
    """

    name: Name
    bytes: Bytes
    load_seconds: Duration | None = None


@dataclass(frozen=True, slots=True, config=_STRICT)
class Stage:
    """One step of a workflow: the models that it runs (none for plain code), its time and the size of its data.

    The output has one size, the same for each stage that takes it. `input_bytes` is None where it is the sum of what
    the stages before put out.
    """

    name: Name
    seconds: SecondsTable
    models: tuple[Name, ...] = ()
    input_bytes: Bytes | None = None
    output_bytes: Bytes = 0

    @classmethod
    def of(
        cls,
        name: str,
        seconds: GivenSeconds,
        model: str | None = None,
        *,
        models: Sequence[str] = (),
        input_bytes: int | None = None,
        output_bytes: int = 0,
    ) -> Stage:
        """A stage from values that a program gives; refuses wrong ones in one line that names the stage."""
        given: dict[str, Any] = {
            "name": name,
            "seconds": seconds,
            "models": (*(() if model is None else (model,)), *models),
            "input_bytes": input_bytes,
            "output_bytes": output_bytes,
        }
        try:
            return cls(**given)
        except ValidationError as failure:
            problem = failure.errors(include_url=False, include_context=True)[0]
            where = f"stage '{name}': {problem['loc'][0]}"
            if problem["type"] == "value_error":
                raise InputError(f"{where}: {problem['ctx']['error']}") from None
            raise InputError(f"{where}: {shown(problem['input'])} given: {problem['msg']}") from None

    def seconds_on(self, accelerator: str, batch: int = 1) -> float:
        """How long a batch takes there with the models in memory; infinite where it has no time.

        A batch whose size has no time of its own takes as long as the next larger one that has.
        """
        times = self.times_on(accelerator)
        return next((seconds for size, seconds in times.items() if size >= batch), math.inf)

    def times_on(self, accelerator: str) -> Mapping[int, float]:
        """The times there by batch size, from the smallest on; empty where it has none."""
        return self.seconds.get(accelerator, self.seconds.get(ANY, {}))

    @property
    def fastest_seconds(self) -> float:
        """The time of a single request on the accelerator type that suits it best."""
        return min(next(iter(times.values())) for times in self.seconds.values())
