"""The OpenAPI document: what FastAPI finds out by itself, with the problems, the token and the body of a job added."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from fairway.jobs.description import JobDescription
from fairway.service.http.documents_in import JSON, TEXT, YAML
from fairway.service.http.problems import MEDIA_TYPE, Problem

_SCHEMAS = "#/components/schemas/"
_EVERYWHERE = (401, 422, 503)

_DESCRIPTION = """Submit training jobs, watch them, and ask why they wait.

Every request needs a token: `Authorization: Bearer TOKEN`. An admin may do everything, a member reads and changes the
jobs of one team, a reader reads. Errors are problem details (RFC 9457) with a stable `code`. Times are seconds since
1970."""


def problems_for(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a route may answer with, for its `responses`."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": f"{_SCHEMAS}Problem"}}},
        }
        for status in statuses
    }


def body_of(schema: dict[str, Any], *kinds: str) -> dict[str, Any]:
    """The description of a body that a route reads by itself."""
    return {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}


JOB_BODY = body_of({"$ref": f"{_SCHEMAS}JobDescription"}, JSON, *sorted(YAML), TEXT)


def describe(app: FastAPI) -> dict[str, Any]:
    """The document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        job = JobDescription.model_json_schema(ref_template=f"{_SCHEMAS}{{model}}")
        schemas |= job.pop("$defs") | {"JobDescription": job, "Problem": Problem.model_json_schema()}
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
        for path in document["paths"].values():
            for operation in path.values():
                for status, problem in problems_for(*_EVERYWHERE).items():
                    operation["responses"][str(status)] = problem
        app.openapi_schema = document
    return app.openapi_schema
