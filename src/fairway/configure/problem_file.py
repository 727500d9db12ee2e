"""Reads the problem of `fairway configure`: the text of a JSON or YAML file in, a `ConfigurationProblem` out.

Nothing here opens a file: `parse_configuration` gets the text and the name to use for it in errors. Whatever is wrong
becomes one line that names the file, the stage, what was given and what was expected.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from fairway.configure.application import Application
from fairway.configure.configuration import Configuration, Prices
from fairway.configure.platform import BARE
from fairway.configure.problem import ConfigurationProblem
from fairway.configure.profile import Profile
from fairway.documents import A_DURATION, A_NAME, Duration, Form, Name
from fairway.errors import InputError

_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)
_MOST = 1_000_000


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Size = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=_MOST)]
Count = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=_MOST)]
Price = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, config=_CLOSED)
class ConfigFields:
    """A configuration as it stands in a file, with its time."""

    batch: Count
    cpu: Size
    gpu: Size
    seconds: Duration


@dataclass(frozen=True, slots=True, config=_CLOSED)
class StageFields:
    """A stage as it stands in a file."""

    name: Name
    configs: list[ConfigFields]

    def profile(self, number: int) -> Profile:
        """The profile that is meant."""
        try:
            return Profile.of([(Configuration(each.batch, each.cpu, each.gpu), each.seconds) for each in self.configs])
        except InputError as error:
            raise InputError(f"stages[{number}] ('{self.name}').{error}") from None


@dataclass(frozen=True, slots=True, config=_CLOSED)
class PriceFields:
    """Prices as they stand in a file; what is left out is as in `Prices`."""

    cpu: Price | None = None
    gpu: Price | None = None

    def prices(self) -> Prices:
        """The prices that are meant."""
        usual = Prices()
        return Prices(usual.cpu if self.cpu is None else self.cpu, usual.gpu if self.gpu is None else self.gpu)


@dataclass(frozen=True, slots=True, config=_CLOSED)
class ConfigurationFile:
    """The fields of a problem file, as they stand there; null is the same as left out."""

    stages: list[StageFields]
    slo_seconds: Duration
    edges: list[tuple[Name, Name]] | None = None
    queue_length: Count | None = None
    prices: PriceFields | None = None
    k: Count | None = None
    group_size: Count | None = None
    gpu_slices: Count | None = None

    def problem(self) -> ConfigurationProblem:
        """The problem that the file describes; refuses what does not fit together."""
        profiles: dict[str, Profile] = {}
        for number, stage in enumerate(self.stages):
            if stage.name in profiles:
                first = list(profiles).index(stage.name)
                raise InputError(
                    f"stages[{number}].name: '{stage.name}' is also the name of stages[{first}]; give each its own"
                )
            profiles[stage.name] = stage.profile(number)
        prices = Prices() if self.prices is None else self.prices.prices()
        return ConfigurationProblem(
            Application.of(profiles, self.edges or (), self.slo_seconds),
            self.queue_length or 1,
            self.k or 5,
            self.group_size or 3,
            replace(BARE, prices=prices, gpu=self.gpu_slices or BARE.gpu),
        )


_A_COUNT = f"a whole number from 1 to {_MOST}"
_A_SIZE = f"a whole number from 0 to {_MOST}"
_A_PRICE = "a number from 0 to 1e+09 (dollars per hour)"
_A_CONFIG = 'an object, as in {"batch": 1, "cpu": 1, "gpu": 1, "seconds": 0.08}'

_FORM: Form[ConfigurationFile] = Form(
    ConfigurationFile,
    {
        "": 'an object with "stages", "edges" and "slo_seconds"',
        "stages": "a list of stages",
        "stages.*": f'an object, as in {{"name": "a", "configs": [{_A_CONFIG.removeprefix("an object, as in ")}]}}',
        "stages.*.name": A_NAME,
        "stages.*.configs": "a list of configurations",
        "stages.*.configs.*": _A_CONFIG,
        "stages.*.configs.*.batch": _A_COUNT,
        "stages.*.configs.*.cpu": _A_SIZE,
        "stages.*.configs.*.gpu": _A_SIZE,
        "stages.*.configs.*.seconds": A_DURATION,
        "edges": 'a list of pairs of stage names, as in [["a", "b"]]',
        "edges.*": 'two names of stages, as in ["a", "b"]',
        "edges.*.*": "the name of a stage",
        "slo_seconds": A_DURATION,
        "queue_length": _A_COUNT,
        "prices": 'an object, as in {"cpu": 0.034, "gpu": 0.67}',
        "prices.cpu": _A_PRICE,
        "prices.gpu": _A_PRICE,
        "k": _A_COUNT,
        "group_size": _A_COUNT,
        "gpu_slices": _A_COUNT,
    },
    {
        "": ConfigurationFile,
        "stages.*": StageFields,
        "stages.*.configs.*": ConfigFields,
        "prices": PriceFields,
    },
)


def parse_configuration(text: str | bytes, source: str) -> ConfigurationProblem:
    """Read the text of a problem file; `source` is its name in errors."""
    file = _FORM.read(text, source)
    try:
        return file.problem()
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
