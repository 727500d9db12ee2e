"""What a shell completes: names of policies, schedulers and scenarios (`fairway --install-completion` sets it up)."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def policies(incomplete: str) -> list[str]:
    """Names of policies, and the options of one whose name is complete."""
    from fairway.allocate.registry import POLICY_PARTS

    return _completed(incomplete, POLICY_PARTS.everything())


def schedulers(incomplete: str) -> list[str]:
    """Names of placers and configurators, and behind a `+` of placers of batches."""
    from fairway.configure.registry import CONFIGURATOR_PARTS
    from fairway.place.registry import BATCH_PLACER_PARTS, PLACER_PARTS

    first, plus, last = incomplete.rpartition("+")
    if plus:
        return [f"{first}+{name}" for name in _completed(last, BATCH_PLACER_PARTS.everything())]
    return _completed(incomplete, {**PLACER_PARTS.everything(), **CONFIGURATOR_PARTS.everything()})


def scenarios(incomplete: str) -> list[str]:
    """Names of scenarios; files are for the shell."""
    from fairway.sim.serving_workload import SCENARIO_NAMES

    return [name for name in SCENARIO_NAMES if name.startswith(incomplete)]


def published(incomplete: str) -> list[str]:
    """Names of published experiments."""
    from fairway.experiments.published import EXPERIMENTS

    return [name for name in EXPERIMENTS if name.startswith(incomplete)]


def _completed(incomplete: str, known: Mapping[str, Callable[..., object]]) -> list[str]:
    from fairway.options import options_of

    name, colon, rest = incomplete.partition(":")
    if not colon:
        return [each for each in known if each.startswith(incomplete)]
    if name not in known:
        return []
    before, comma, last = rest.rpartition(",")
    start = f"{name}:{before}{comma}"
    options = [f"{option.name}{'' if option.is_flag else '='}" for option in options_of(known[name])]
    return [f"{start}{option}" for option in options if option.startswith(last) and option not in rest.split(",")]
