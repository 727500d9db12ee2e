"""What is just allowed, and what is just not: every option and field of floor 2 with a limit."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from fairway import Application, Configuration, Platform, Prices, Profile, configurator_of
from fairway.configure.configuration import ConfigurationSpace
from fairway.configure.problem import ConfigurationProblem
from fairway.errors import InputError

ONE = Profile.of({Configuration(1, 1, 1): 1.0})


def problem(slo: float = 1.0, profile: Profile = ONE, **fields: int) -> ConfigurationProblem:
    return ConfigurationProblem(Application.of({"a": profile, "b": profile}, [("a", "b")], slo), **fields)


def profile(batch: int = 1, cpu: int = 1, gpu: int = 1, seconds: float = 1.0) -> Profile:
    return Profile.of({Configuration(batch, cpu, gpu): seconds})


@pytest.mark.parametrize(
    "text",
    [
        "esg:margin=0", "esg:margin=0.999", "esg:k=1", "esg:group-size=1", "esg:forced-after=0", "front:k=1",
        "nexus:rounds=1", "nexus:epoch=0.001", "inferline:sample=1", "inferline:epoch=0.001", "shepherd:most=1",
        "shepherd:epoch=0.001", "shepherd:preemption=1.001",
    ],
)  # fmt: skip
def test_options_at_their_limit_are_taken(text: str) -> None:
    configurator_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "esg:margin=1", "esg:k=0", "esg:group-size=0", "front:k=0", "nexus:rounds=0",
        "nexus:epoch=0", "inferline:sample=0", "inferline:epoch=0", "shepherd:most=0", "shepherd:epoch=0",
        "shepherd:preemption=1",
    ],
)  # fmt: skip
def test_options_beyond_it_are_refused_by_their_name(text: str) -> None:
    part, _, option = text.partition(":")
    with pytest.raises(InputError, match=f"^{part}: {option.partition('=')[0]}: "):
        configurator_of(text)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Prices(0.0, 0.0),
        lambda: ConfigurationSpace((1,), (0,), (0, 1)),
        lambda: profile(cpu=0),
        lambda: profile(gpu=0),
        lambda: profile(seconds=0.0),
        lambda: problem(0.0),
        lambda: problem(queue_length=1, k=1, group_size=1),
        lambda: problem(profile=profile(2), queue_length=2),
        lambda: ConfigurationProblem(Application.of({"a": profile(gpu=7)}, [], 1.0), platform=Platform(gpu=7)),
    ],
)
def test_values_at_their_limit_are_taken(make: Callable[[], object]) -> None:
    make()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Prices(cpu=-0.001), "prices.cpu: "),
        (lambda: Prices(gpu=math.inf), "prices.gpu: "),
        (lambda: ConfigurationSpace(batches=(0, 1)), "batches: "),
        (lambda: ConfigurationSpace(cpus=(-1, 1)), "cpus: "),
        (lambda: ConfigurationSpace(gpus=()), "gpus: "),
        (lambda: ConfigurationSpace(gpus=(2, 2)), "gpus: "),
        (lambda: ConfigurationSpace(gpus=(3, 2)), "gpus: "),
        (lambda: profile(batch=0), "configs[0].batch: "),
        (lambda: profile(cpu=0, gpu=0), "configs[0]: "),
        (lambda: profile(cpu=-1), "configs[0]: "),
        (lambda: profile(gpu=-1), "configs[0]: "),
        (lambda: profile(seconds=-0.001), "configs[0].seconds: "),
        (lambda: profile(seconds=math.inf), "configs[0].seconds: "),
        (lambda: Profile.of({}), "configs: "),
        (lambda: problem(-0.001), "slo_seconds: "),
        (lambda: problem(math.inf), "slo_seconds: "),
        (lambda: problem(queue_length=0), "queue_length: "),
        (lambda: problem(k=0), "k: "),
        (lambda: problem(group_size=0), "group_size: "),
        (lambda: problem(profile=profile(2)), "stages[0] ('a').configs: the smallest batch is 2"),
        (
            lambda: ConfigurationProblem(Application.of({"a": profile(gpu=8)}, [], 1.0), platform=Platform(gpu=7)),
            "stages[0] ('a').configs[0].gpu: 8 given",
        ),
    ],
)
def test_values_beyond_it_are_refused_by_their_name(make: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value).startswith(said)
