"""The OpenAPI document, and the service asked whatever the document allows, and what it does not allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from tests.service.running import JOB, PATIENCE, Served, served

ASKED = [
    ("post", "/jobs"), ("get", "/jobs"), ("get", "/jobs/{job}"), ("post", "/jobs/{job}/cancel"),
    ("post", "/jobs/cancel"), ("get", "/usage"),
    ("get", "/jobs/{job}/explain"), ("get", "/jobs/{job}/logs"), ("get", "/jobs/{job}/events"), ("get", "/workers"),
    ("post", "/workers/drain"), ("get", "/status"), ("get", "/metrics"), ("get", "/journal"), ("get", "/tokens"),
    ("post", "/tokens"), ("delete", "/tokens/{id}"), ("post", "/tokens/{id}/rotate"),
    ("get", "/reservations"), ("post", "/reservations"), ("delete", "/reservations/{reservation}"),
    ("get", "/plan/state"), ("post", "/plan"), ("get", "/history"), ("get", "/session"), ("post", "/session"),
    ("delete", "/session"),
]  # fmt: skip
_EXAMPLES = 10

load_all_checks()

# A job that is described well is refused all the same if this machine has no such command; and not everything that
# breaks the description in a query survives being written into an address.
_EXCLUDED = CHECKS.get_by_names(["positive_data_acceptance", "negative_data_rejection"])


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with a job that has ended, so that no stream of it lasts."""
    with served(tmp_path_factory.mktemp("asked")) as service, service.client() as client:
        client.post("/jobs", json=JOB)
        service.scheduler.finish("job-1")
        service.scheduler.idle = True
        yield service
        assert client.get("/status").status_code == 200


@pytest.fixture(scope="module")
def schema(asked: Served) -> Any:
    headers = {"Authorization": f"Bearer {asked.secret}"}
    return schemathesis.openapi.from_url(f"{asked.address}/openapi.json", headers=headers)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("method", "path"), ASKED)
def test_nothing_that_is_asked_makes_it_fail(
    asked: Served, schema: Any, method: str, path: str, mode: GenerationMode
) -> None:
    @settings(max_examples=_EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        headers = {"Authorization": f"Bearer {asked.secret}"}
        case.call_and_validate(headers=headers, excluded_checks=_EXCLUDED, timeout=PATIENCE)

    try:
        ask()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE, "a route without parameters cannot be asked wrongly"


def test_every_route_but_the_endless_one_is_asked(schema: Any) -> None:
    routes = {(method, path) for path in schema for method in schema[path]}
    assert routes == {*ASKED, ("get", "/events")}


def test_every_route_says_that_it_needs_a_token_and_how_it_refuses(schema: Any) -> None:
    document = schema.raw_schema
    assert document["security"] == [{"token": []}]
    assert document["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for status in ("401", "422", "503"):
                problem = operation["responses"][status]["content"]["application/problem+json"]["schema"]
                assert problem == {"$ref": "#/components/schemas/Problem"}, (method, path)
            assert operation["summary"]
            assert operation["description"]
    body = document["paths"]["/jobs"]["post"]["requestBody"]
    assert body["required"]
    assert {"application/json", "application/yaml", "text/yaml", "text/plain"} <= set(body["content"])
    assert document["components"]["schemas"]["JobDescription"]["required"] == ["run"]
