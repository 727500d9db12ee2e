"""The public API: exactly these names, and no more."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fairway

NAMES = [
    "CONFIGURATORS",
    "POLICIES",
    "SCHEDULERS",
    "Allocation",
    "Answer",
    "Application",
    "AsyncClient",
    "Binding",
    "Candidate",
    "Client",
    "Cluster",
    "Configuration",
    "ConfigurationProblem",
    "ConfigurationSpace",
    "Configurator",
    "ConfiguratorError",
    "Dispatch",
    "Entity",
    "FairwayError",
    "Fleet",
    "InputError",
    "Invokers",
    "Job",
    "Links",
    "LocalWorkflow",
    "Model",
    "NoFit",
    "NoPlaceError",
    "Pair",
    "Pairs",
    "PlacementProblem",
    "Plan",
    "Platform",
    "Policy",
    "PolicyError",
    "Prices",
    "Problem",
    "Profile",
    "Profiling",
    "Queue",
    "Request",
    "Scheduler",
    "SchedulerError",
    "Stage",
    "StageError",
    "StateTable",
    "Submission",
    "SyntheticFunction",
    "TaskGraph",
    "TrainingEngine",
    "TrainingOptions",
    "TrainingRecord",
    "Transfers",
    "Wait",
    "Worker",
    "Workflow",
    "Workload",
    "allocate",
    "check_configurator",
    "check_policy",
    "check_scheduler",
    "configurator_of",
    "configure",
    "leased",
    "load_application",
    "parse_configuration",
    "parse_placement",
    "parse_problem",
    "parse_workflow",
    "parse_workflows",
    "place",
    "policy_of",
    "run_locally",
    "scheduler_of",
    "simulate_training",
    "stage",
    "workflow",
    "workflow_of",
]


def test_the_exported_names_are_these() -> None:
    assert fairway.__all__ == NAMES
    assert set(NAMES) <= set(dir(fairway))


@pytest.mark.parametrize("name", NAMES)
def test_every_exported_name_is_there(name: str) -> None:
    assert getattr(fairway, name) is not None


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'fairway' has no attribute 'Autoscaler'"):
        _ = fairway.Autoscaler
    with pytest.raises(ImportError):
        from fairway import Autoscaler  # noqa: F401, PLC0415


@pytest.mark.parametrize(
    "first",
    [
        "import fairway",
        "from fairway import *",
        "from fairway.allocate.problem import Problem",
        "import fairway.allocate.problem as problem",
        "from fairway import Problem",
    ],
)
def test_allocate_can_be_called_and_its_modules_imported_whatever_comes_first(first: str) -> None:
    script = f"""
{first}
import fairway, fairway.allocate.problem as module
from fairway import Cluster, Job, allocate
from fairway.allocate.problem import Problem
assert Problem is fairway.Problem is module.Problem
problem = Problem.of(Cluster({{"v100": 1}}), [Job("a", {{"v100": 2.0}})])
assert fairway.allocate is allocate
assert callable(allocate)
try:
    allocate("no-such-policy", problem)
except fairway.InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("policy 'no-such-policy' is not known")


def test_importing_fairway_does_not_import_the_numerical_libraries() -> None:
    heavy = {"numpy", "scipy", "numba", "highspy", "httpx", "pydantic", "rustworkx", "sqlalchemy", "yaml"}
    script = f"import fairway, fairway.cli.main, sys; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_place_can_be_called_and_its_modules_imported() -> None:
    script = """
import fairway, fairway.place.plan as module
from fairway import PlacementProblem, Stage, Worker, Workflow, place
problem = PlacementProblem.of(Workflow((Stage.of("a", 0.5),)), [Worker("w0", 1)])
assert fairway.place is place
assert module.Plan is fairway.Plan
print(place("compass", problem).assignment)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "{'a': 'w0'}\n"


def test_configure_can_be_called_and_its_modules_imported() -> None:
    script = """
import fairway, fairway.configure.answer as module
from fairway import Application, Configuration, ConfigurationProblem, Profile, configure
profile = Profile.of({Configuration(1, 1, 1): 0.5})
answer = configure("front", ConfigurationProblem(Application.of({"a": profile}, [], 1.0)))
assert fairway.configure is configure
assert module.Answer is fairway.Answer
print(answer.candidates[0].plan)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "{0: Configuration(batch=1, cpu=1, gpu=1)}\n"


def test_a_job_that_uses_leased_does_not_pay_for_the_rest() -> None:
    heavy = {"asyncio", "numpy", "scipy", "numba", "highspy", "pydantic", "rustworkx", "subprocess", "torch", "yaml"}
    script = f"import fairway, sys; fairway.leased; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
