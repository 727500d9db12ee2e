"""Fairway schedules machine learning on mixed accelerators.

This is the public Python API; everything else may change without notice. A name is imported when it is first used, so
that `fairway --help` need not wait for the numerical libraries.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairway.allocate.allocation import Allocation, Binding
    from fairway.allocate.check import PolicyError, check_policy
    from fairway.allocate.pairs import Pairs
    from fairway.allocate.policies import POLICIES
    from fairway.allocate.policy import Policy
    from fairway.allocate.problem import Problem
    from fairway.allocate.problem_file import parse_problem
    from fairway.allocate.registry import allocate, policy_of
    from fairway.client import AsyncClient, Client
    from fairway.cluster import Cluster
    from fairway.configure.application import Application
    from fairway.configure.capacity import Capacity
    from fairway.configure.check import ConfiguratorError, check_configurator
    from fairway.configure.configuration import Configuration, ConfigurationSpace, Prices
    from fairway.configure.configurator import Configurator
    from fairway.configure.configurators import CONFIGURATORS
    from fairway.configure.platform import Platform
    from fairway.configure.problem import ConfigurationProblem
    from fairway.configure.problem_file import parse_configuration
    from fairway.configure.profile import Profile, SyntheticFunction
    from fairway.configure.queues import Candidates, Choice, Queue, Wait
    from fairway.configure.registry import configurator_of
    from fairway.configure.search.algorithms import configure
    from fairway.configure.search.answer import Answer, Candidate
    from fairway.engine.serving.engine import ServingEngine
    from fairway.engine.serving.schedule import Schedule, schedule_of
    from fairway.engine.training.engine import TrainingEngine
    from fairway.errors import FairwayError, InputError
    from fairway.experiments.results import sweep
    from fairway.experiments.sweep import Sweep
    from fairway.jobs import Entity, Job, Pair
    from fairway.links import Links, Transfers
    from fairway.live.backend.check import BackendError, check_backend
    from fairway.live.backend.protocol import Backend
    from fairway.live.job.leased import leased
    from fairway.live.serving.application.definition import load_application
    from fairway.live.serving.application.in_process import LocalWorkflow, run_locally
    from fairway.live.serving.seams.check_transport import check_transport
    from fairway.place.batch import NOWHERE, Batch, Room
    from fairway.place.check import SchedulerError, check_scheduler
    from fairway.place.fleet import Fleet, Worker
    from fairway.place.graph import TaskGraph
    from fairway.place.placer import BatchPlacer, Placer, WorkerRules
    from fairway.place.placers import BATCH_PLACERS, PLACERS
    from fairway.place.plan import NoPlaceError, Plan, Request
    from fairway.place.problem import PlacementProblem
    from fairway.place.problem_file import parse_placement
    from fairway.place.registry import place, placer_of
    from fairway.place.state import StateTable
    from fairway.profiles.estimators import Estimator, estimator_of
    from fairway.report.serving.metrics import summarize_serving
    from fairway.report.serving.record import ServingRecord
    from fairway.report.training.record import TrainingRecord
    from fairway.sim.profiling import Profiling
    from fairway.sim.serving import ServingOptions, simulate_serving
    from fairway.sim.serving_workload import EsgApps, ServingRun, ServingWorkload
    from fairway.sim.submissions import Submission, TrainingOptions
    from fairway.sim.training import simulate_training
    from fairway.sim.workload import Workload
    from fairway.traces.files import TraceReader
    from fairway.workflows import (
        Model,
        Stage,
        StageError,
        Workflow,
        parse_workflow,
        parse_workflows,
        stage,
        workflow,
        workflow_of,
    )

__all__ = [
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

_HOME = {
    "BATCH_PLACERS": "fairway.place.placers",
    "CONFIGURATORS": "fairway.configure.configurators",
    "NOWHERE": "fairway.place.batch",
    "PLACERS": "fairway.place.placers",
    "POLICIES": "fairway.allocate.policies",
    "Allocation": "fairway.allocate.allocation",
    "Answer": "fairway.configure.search.answer",
    "Application": "fairway.configure.application",
    "AsyncClient": "fairway.client",
    "Backend": "fairway.live.backend.protocol",
    "BackendError": "fairway.live.backend.check",
    "Batch": "fairway.place.batch",
    "BatchPlacer": "fairway.place.placer",
    "Binding": "fairway.allocate.allocation",
    "Candidate": "fairway.configure.search.answer",
    "Candidates": "fairway.configure.queues",
    "Capacity": "fairway.configure.capacity",
    "Choice": "fairway.configure.queues",
    "Client": "fairway.client",
    "Cluster": "fairway.cluster",
    "Configuration": "fairway.configure.configuration",
    "ConfigurationProblem": "fairway.configure.problem",
    "ConfigurationSpace": "fairway.configure.configuration",
    "Configurator": "fairway.configure.configurator",
    "ConfiguratorError": "fairway.configure.check",
    "Entity": "fairway.jobs",
    "EsgApps": "fairway.sim.serving_workload",
    "Estimator": "fairway.profiles.estimators",
    "FairwayError": "fairway.errors",
    "Fleet": "fairway.place.fleet",
    "InputError": "fairway.errors",
    "Job": "fairway.jobs",
    "Links": "fairway.links",
    "LocalWorkflow": "fairway.live.serving.application.in_process",
    "Model": "fairway.workflows",
    "NoPlaceError": "fairway.place.plan",
    "Pair": "fairway.jobs",
    "Pairs": "fairway.allocate.pairs",
    "PlacementProblem": "fairway.place.problem",
    "Placer": "fairway.place.placer",
    "Plan": "fairway.place.plan",
    "Platform": "fairway.configure.platform",
    "Policy": "fairway.allocate.policy",
    "PolicyError": "fairway.allocate.check",
    "Prices": "fairway.configure.configuration",
    "Problem": "fairway.allocate.problem",
    "Profile": "fairway.configure.profile",
    "Profiling": "fairway.sim.profiling",
    "Queue": "fairway.configure.queues",
    "Request": "fairway.place.plan",
    "Room": "fairway.place.batch",
    "Schedule": "fairway.engine.serving.schedule",
    "SchedulerError": "fairway.place.check",
    "ServingEngine": "fairway.engine.serving.engine",
    "ServingOptions": "fairway.sim.serving",
    "ServingRecord": "fairway.report.serving.record",
    "ServingRun": "fairway.sim.serving_workload",
    "ServingWorkload": "fairway.sim.serving_workload",
    "Stage": "fairway.workflows",
    "StageError": "fairway.workflows",
    "StateTable": "fairway.place.state",
    "Submission": "fairway.sim.submissions",
    "Sweep": "fairway.experiments.sweep",
    "SyntheticFunction": "fairway.configure.profile",
    "TaskGraph": "fairway.place.graph",
    "TraceReader": "fairway.traces.files",
    "TrainingEngine": "fairway.engine.training.engine",
    "TrainingOptions": "fairway.sim.submissions",
    "TrainingRecord": "fairway.report.training.record",
    "Transfers": "fairway.links",
    "Wait": "fairway.configure.queues",
    "Worker": "fairway.place.fleet",
    "WorkerRules": "fairway.place.placer",
    "Workflow": "fairway.workflows",
    "Workload": "fairway.sim.workload",
    "check_backend": "fairway.live.backend.check",
    "check_configurator": "fairway.configure.check",
    "check_policy": "fairway.allocate.check",
    "check_scheduler": "fairway.place.check",
    "check_transport": "fairway.live.serving.seams.check_transport",
    "configurator_of": "fairway.configure.registry",
    "estimator_of": "fairway.profiles.estimators",
    "leased": "fairway.live.job.leased",
    "load_application": "fairway.live.serving.application.definition",
    "parse_configuration": "fairway.configure.problem_file",
    "parse_placement": "fairway.place.problem_file",
    "parse_problem": "fairway.allocate.problem_file",
    "parse_workflow": "fairway.workflows",
    "parse_workflows": "fairway.workflows",
    "placer_of": "fairway.place.registry",
    "policy_of": "fairway.allocate.registry",
    "run_locally": "fairway.live.serving.application.in_process",
    "schedule_of": "fairway.engine.serving.schedule",
    "simulate_serving": "fairway.sim.serving",
    "simulate_training": "fairway.sim.training",
    "stage": "fairway.workflows",
    "summarize_serving": "fairway.report.serving.metrics",
    "sweep": "fairway.experiments.results",
    "workflow": "fairway.workflows",
    "workflow_of": "fairway.workflows",
}

if not TYPE_CHECKING:  # a type checker that saw this would believe in any name

    def __getattr__(name: str) -> object:
        if name in {"allocate", "configure", "place"}:
            return import_module(f"fairway.{name}")  # the package itself, which can be called
        if name not in _HOME:
            raise AttributeError(f"module 'fairway' has no attribute '{name}'")
        try:
            value = globals()[name] = getattr(import_module(_HOME[name]), name)
        except ModuleNotFoundError as error:
            line = import_module("fairway.extras").missing(error)
            if line is None:
                raise
            raise ModuleNotFoundError(f"fairway.{name}: {line}", name=error.name) from error
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
