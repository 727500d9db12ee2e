"""Sequences of requests that the OpenAPI document allows, in which what one answers is asked for by the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from schemathesis.checks import CHECKS, load_all_checks

from fairway.store.tokens import Role
from tests.service.running import PATIENCE, served

load_all_checks()

_ENDLESS = r"/events$|/logs$"
"""Streams of jobs that have not ended; each is asked by itself in `test_openapi`."""

_EXCLUDED = CHECKS.get_by_names(
    ["positive_data_acceptance", "negative_data_rejection", "ignored_auth", "ensure_resource_availability"]
)


def test_no_sequence_of_requests_makes_it_fail(tmp_path: Path) -> None:
    with served(tmp_path, idle=True) as service:
        token = {"Authorization": f"Bearer {service.secret}"}
        schema = schemathesis.openapi.from_url(f"{service.address}/openapi.json", headers=token)
        machine: Any = schema.exclude(path_regex=_ENDLESS).as_state_machine()
        failures: list[str] = []

        class Asking(machine):  # type: ignore[misc]
            def get_call_kwargs(self, case: Any) -> dict[str, Any]:  # noqa: ARG002
                return {"headers": token, "timeout": PATIENCE}

            def validate_response(self, response: Any, case: Any, **_: Any) -> None:
                failures.extend([response.text] if response.status_code == 500 else [])
                case.validate_response(response, excluded_checks=_EXCLUDED)

        run_state_machine_as_test(
            Asking,
            settings=settings(
                max_examples=5,
                stateful_step_count=6,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
        assert not failures
        fresh = service.client_with(service.new_token(Role.ADMIN))
        with fresh:
            assert fresh.get("/status").status_code == 200
