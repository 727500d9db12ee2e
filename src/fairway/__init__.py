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
    from fairway.allocate.policies import POLICIES
    from fairway.allocate.policy import Policy
    from fairway.allocate.problem import Pairs, Problem
    from fairway.allocate.problem_file import parse_problem
    from fairway.allocate.registry import allocate, policy_of
    from fairway.client import AsyncClient, Client
    from fairway.cluster import Cluster
    from fairway.configure.algorithms import configure
    from fairway.configure.answer import Answer, Candidate
    from fairway.configure.application import Application
    from fairway.configure.check import ConfiguratorError, check_configurator
    from fairway.configure.configuration import Configuration, ConfigurationSpace, Prices
    from fairway.configure.configurator import Configurator
    from fairway.configure.configurators import CONFIGURATORS
    from fairway.configure.invokers import Invokers
    from fairway.configure.platform import Platform, Transfers
    from fairway.configure.problem import ConfigurationProblem
    from fairway.configure.problem_file import parse_configuration
    from fairway.configure.profile import Profile, SyntheticFunction
    from fairway.configure.queues import Dispatch, NoFit, Queue, Wait
    from fairway.configure.registry import configurator_of
    from fairway.engine.training import TrainingEngine
    from fairway.errors import FairwayError, InputError
    from fairway.jobs import Entity, Job, Pair
    from fairway.live.leased import leased
    from fairway.live.serving.application import load_application
    from fairway.live.serving.local import LocalWorkflow, run_locally
    from fairway.place.check import SchedulerError, check_scheduler
    from fairway.place.fleet import Fleet, Worker
    from fairway.place.graph import TaskGraph
    from fairway.place.links import Links
    from fairway.place.plan import NoPlaceError, Plan, Request
    from fairway.place.problem import PlacementProblem
    from fairway.place.problem_file import parse_placement
    from fairway.place.registry import place, scheduler_of
    from fairway.place.scheduler import Scheduler
    from fairway.place.schedulers import SCHEDULERS
    from fairway.place.state import StateTable
    from fairway.report.training_record import TrainingRecord
    from fairway.sim.profiling import Profiling
    from fairway.sim.submissions import Submission, TrainingOptions
    from fairway.sim.training import simulate_training
    from fairway.sim.workload import Workload
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

_HOME = {
    "CONFIGURATORS": "fairway.configure.configurators",
    "POLICIES": "fairway.allocate.policies",
    "SCHEDULERS": "fairway.place.schedulers",
    "Allocation": "fairway.allocate.allocation",
    "Answer": "fairway.configure.answer",
    "Application": "fairway.configure.application",
    "AsyncClient": "fairway.client",
    "Binding": "fairway.allocate.allocation",
    "Candidate": "fairway.configure.answer",
    "Client": "fairway.client",
    "Cluster": "fairway.cluster",
    "Configuration": "fairway.configure.configuration",
    "ConfigurationProblem": "fairway.configure.problem",
    "ConfigurationSpace": "fairway.configure.configuration",
    "Configurator": "fairway.configure.configurator",
    "ConfiguratorError": "fairway.configure.check",
    "Dispatch": "fairway.configure.queues",
    "Entity": "fairway.jobs",
    "FairwayError": "fairway.errors",
    "Fleet": "fairway.place.fleet",
    "InputError": "fairway.errors",
    "Invokers": "fairway.configure.invokers",
    "Job": "fairway.jobs",
    "Links": "fairway.place.links",
    "LocalWorkflow": "fairway.live.serving.local",
    "Model": "fairway.workflows",
    "NoFit": "fairway.configure.queues",
    "NoPlaceError": "fairway.place.plan",
    "Pair": "fairway.jobs",
    "Pairs": "fairway.allocate.problem",
    "PlacementProblem": "fairway.place.problem",
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
    "Scheduler": "fairway.place.scheduler",
    "SchedulerError": "fairway.place.check",
    "Stage": "fairway.workflows",
    "StageError": "fairway.workflows",
    "StateTable": "fairway.place.state",
    "Submission": "fairway.sim.submissions",
    "SyntheticFunction": "fairway.configure.profile",
    "TaskGraph": "fairway.place.graph",
    "TrainingEngine": "fairway.engine.training",
    "TrainingOptions": "fairway.sim.submissions",
    "TrainingRecord": "fairway.report.training_record",
    "Transfers": "fairway.configure.platform",
    "Wait": "fairway.configure.queues",
    "Worker": "fairway.place.fleet",
    "Workflow": "fairway.workflows",
    "Workload": "fairway.sim.workload",
    "check_configurator": "fairway.configure.check",
    "check_policy": "fairway.allocate.check",
    "check_scheduler": "fairway.place.check",
    "configurator_of": "fairway.configure.registry",
    "parse_configuration": "fairway.configure.problem_file",
    "leased": "fairway.live.leased",
    "load_application": "fairway.live.serving.application",
    "parse_placement": "fairway.place.problem_file",
    "parse_problem": "fairway.allocate.problem_file",
    "parse_workflow": "fairway.workflows",
    "parse_workflows": "fairway.workflows",
    "policy_of": "fairway.allocate.registry",
    "run_locally": "fairway.live.serving.local",
    "scheduler_of": "fairway.place.registry",
    "simulate_training": "fairway.sim.training",
    "stage": "fairway.workflows",
    "workflow": "fairway.workflows",
    "workflow_of": "fairway.workflows",
}

if not TYPE_CHECKING:  # a type checker that saw this would believe in any name

    def __getattr__(name: str) -> object:
        if name in {"allocate", "configure", "place"}:
            return import_module(f"fairway.{name}")  # the package itself, which can be called
        if name not in _HOME:
            raise AttributeError(f"module 'fairway' has no attribute '{name}'")
        value = globals()[name] = getattr(import_module(_HOME[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
