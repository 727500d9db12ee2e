"""Which schedulers `fairway simulate serving` was asked for, and whether they fit the other options and the scenario.

What makes no sense together is refused with the reason. What only changes nothing is said, and run.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.cli.simulate.serving_experiment import ServingExperiment
from fairway.compat.navigator.run import is_compat
from fairway.engine.serving.schedule import Schedule, schedule_of
from fairway.errors import InputError
from fairway.sim.scenario import Scenario


def schedules_of(schedulers: Sequence[str]) -> dict[str, Schedule]:
    """The schedulers by name; refuses one that is not known."""
    return {scheduler: schedule_of(scheduler) for scheduler in schedulers}


def check_combination(experiment: ServingExperiment, schedules: dict[str, Schedule], scenario: Scenario) -> None:
    """Refuse what makes no sense together."""
    if experiment.no_recovery and experiment.fail:
        raise InputError(
            "--no-recovery: given, but with --fail requests would be lost with their worker; leave out one"
        )
    for name, schedule in schedules.items():
        if is_compat(name):
            _check_compat(name, schedule, experiment)
        elif schedule.configurator is not None:
            _check_configurator(name, experiment, scenario)
        elif experiment.overhead is not None and experiment.overhead.strip() == "measured":
            raise InputError(
                f"--overhead: 'measured' is the time that a configurator takes to decide, and '{name}' has none; "
                "give a time, as in 1ms"
            )
    flags = (experiment.containers or "").partition(",")[2]
    if flags and all(schedule.configurator is None for schedule in schedules.values()):
        raise InputError(
            f"--containers: '{flags}' is about jobs that wait for a configurator's decision, and "
            f"'{next(iter(schedules))}' has none; leave it out"
        )


def notes_on(experiment: ServingExperiment, schedules: dict[str, Schedule]) -> list[str]:
    """What changes nothing in any of the runs."""
    if experiment.staleness is not None and all(schedule.centralised for schedule in schedules.values()):
        return [f"--staleness: changes nothing, since under {', '.join(schedules)} one engine plans and knows all"]
    return []


def _check_compat(name: str, schedule: Schedule, experiment: ServingExperiment) -> None:
    """The experiment of Compass's authors has nothing but its own clients, workers and news."""
    if schedule.configurator is not None:
        raise InputError(f"--scheduler: '{name}' has a configurator, which compat knows nothing of; leave out compat")
    if experiment.is_esg_apps:
        raise InputError(f"--scheduler: '{name}' repeats an experiment on compass-edge; leave out compat")
    if experiment.arrivals != "clients":
        raise InputError(f"--scheduler: '{name}' repeats the experiment of Compass's authors; add --arrivals clients")
    for option, is_given in (
        ("--fail", experiment.fail),
        ("--noise", experiment.noise),
        ("--nic-queues", experiment.nic_queues),
        ("--no-recovery", experiment.no_recovery),
        ("--no-time-watching", experiment.no_time_watching),
    ):
        if is_given:
            raise InputError(
                f"{option}: given, but '{name}' repeats the experiment of Compass's authors, which has no such thing; "
                "leave out one"
            )


def _check_configurator(name: str, experiment: ServingExperiment, scenario: Scenario) -> None:
    if experiment.nic_queues:
        raise InputError(
            f"--nic-queues: given, but the batches of '{name}' gather their inputs from several workers at once; "
            "leave out one"
        )
    try:
        scenario.applications(experiment.slo_scale)
    except InputError as error:
        raise InputError(f"--scheduler: '{name}': {error}") from None
