"""Workflow graphs: stages that run models, the edges between them, and what a scheduler wants to know of both."""

from __future__ import annotations

from fairway.workflows.arguments import Arguments, StageError
from fairway.workflows.compose import Call, Input, StageFunction, workflow_of
from fairway.workflows.decorators import stage
from fairway.workflows.graph import CriticalPath, Workflow, models_of
from fairway.workflows.model import ANY, Model, Stage
from fairway.workflows.recording import Recording
from fairway.workflows.stage_class import StageClass, StageUse
from fairway.workflows.workflow_file import parse_workflow, parse_workflows
from fairway.workflows.workflow_function import WorkflowFunction, workflow

__all__ = [
    "ANY",
    "Arguments",
    "Call",
    "CriticalPath",
    "Input",
    "Model",
    "Recording",
    "Stage",
    "StageClass",
    "StageError",
    "StageFunction",
    "StageUse",
    "Workflow",
    "WorkflowFunction",
    "models_of",
    "parse_workflow",
    "parse_workflows",
    "stage",
    "workflow",
    "workflow_of",
]
