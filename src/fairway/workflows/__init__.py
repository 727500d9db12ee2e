"""Workflow graphs: stages that run models, the edges between them, and what a scheduler wants to know of both."""

from __future__ import annotations

from fairway.workflows.compose import Call, StageFunction, stage, workflow_of
from fairway.workflows.graph import CriticalPath, Workflow, models_of
from fairway.workflows.model import ANY, Model, Stage
from fairway.workflows.workflow_file import parse_workflow, parse_workflows

__all__ = [
    "ANY",
    "Call",
    "CriticalPath",
    "Model",
    "Stage",
    "StageFunction",
    "Workflow",
    "models_of",
    "parse_workflow",
    "parse_workflows",
    "stage",
    "workflow_of",
]
