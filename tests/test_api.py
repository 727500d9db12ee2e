"""The public API: exactly these names, and no more."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fairway

NAMES = [
    "BATCH_PLACERS",
    "CONFIGURATORS",
    "NOWHERE",
    "PLACERS",
    "POLICIES",
    "Allocation",
    "Answer",
    "Application",
    "AsyncClient",
    "Backend",
    "BackendError",
    "Batch",
    "BatchPlacer",
    "Binding",
    "Candidate",
    "Candidates",
    "Capacity",
    "Choice",
    "Client",
    "Cluster",
    "Configuration",
    "ConfigurationProblem",
    "ConfigurationSpace",
    "Configurator",
    "ConfiguratorError",
    "Entity",
    "EsgApps",
    "Estimator",
    "FairwayError",
    "Fleet",
    "InputError",
    "Job",
    "Links",
    "LocalWorkflow",
    "Model",
    "NoPlaceError",
    "Pair",
    "Pairs",
    "PlacementProblem",
    "Placer",
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
    "Room",
    "Schedule",
    "SchedulerError",
    "ServingEngine",
    "ServingOptions",
    "ServingRecord",
    "ServingRun",
    "ServingWorkload",
    "Stage",
    "StageError",
    "StateTable",
    "Submission",
    "Sweep",
    "SyntheticFunction",
    "TaskGraph",
    "TraceReader",
    "TrainingEngine",
    "TrainingOptions",
    "TrainingRecord",
    "Transfers",
    "Wait",
    "Worker",
    "WorkerRules",
    "Workflow",
    "Workload",
    "allocate",
    "check_backend",
    "check_configurator",
    "check_policy",
    "check_scheduler",
    "check_transport",
    "configurator_of",
    "configure",
    "estimator_of",
    "leased",
    "load_application",
    "parse_configuration",
    "parse_placement",
    "parse_problem",
    "parse_workflow",
    "parse_workflows",
    "place",
    "placer_of",
    "policy_of",
    "run_locally",
    "schedule_of",
    "simulate_serving",
    "simulate_training",
    "stage",
    "summarize_serving",
    "sweep",
    "workflow",
    "workflow_of",
]


def test_the_exported_names_are_these() -> None:
    assert fairway.__all__ == NAMES
    assert set(NAMES) <= set(dir(fairway))


def test_they_are_sorted_and_each_has_a_home_but_the_verbs_of_the_floors() -> None:
    assert list(fairway._HOME) == [name for name in NAMES if name not in {"allocate", "configure", "place"}]
    by_kind = [(not name.isupper(), name[0].islower(), name) for name in NAMES]
    assert by_kind == sorted(by_kind), "constants, then classes, then functions"


@pytest.mark.parametrize("name", NAMES)
def test_every_exported_name_is_there(name: str) -> None:
    assert getattr(fairway, name) is not None


def test_type_checkers_find_each_name_where_it_is_at_run_time() -> None:
    tree = ast.parse(Path(fairway.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module is not None]
    homes = {alias.name: node.module for node in imports for alias in node.names if node.module.startswith("fairway")}
    assert {name: homes[name] for name in fairway._HOME} == fairway._HOME
    assert set(homes) == set(NAMES)


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


def test_a_client_that_submits_nothing_does_not_wait_for_the_reading_of_jobs() -> None:
    heavy = {"numpy", "pydantic", "sqlalchemy", "yaml"}
    script = f"import fairway.client, sys; print({heavy} & set(sys.modules))"
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
import fairway, fairway.configure.search.answer as module
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
