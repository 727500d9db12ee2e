"""What both clients ask, and what they make of the answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse

import fairway
from fairway.client import AsyncClient, Client, ConflictError, DryRun, Job, NotAllowedError, NotFoundError, ServiceError
from fairway.errors import FairwayError, InputError
from fairway.jobs.description import parse_job
from tests.client.both import Both
from tests.client.server import DETAILS, TOKEN, Made, job, problem, running


def test_both_clients_have_the_same_methods_with_the_same_parameters() -> None:
    import inspect  # noqa: PLC0415

    def methods(kind: type) -> dict[str, Any]:
        public = {name: one for name, one in vars(kind).items() if not name.startswith("_") and callable(one)}
        return {name: str(inspect.signature(one)).partition(" ->")[0] for name, one in public.items()}

    assert methods(Client) == methods(AsyncClient)
    assert fairway.Client is Client
    assert fairway.AsyncClient is AsyncClient


def test_a_mapping_is_submitted_as_json_with_a_key_of_its_own(client: Both, made: Made) -> None:
    first = client.submit({"run": "python train.py"})
    second = client.submit({"run": "python train.py"})
    assert (first.id, first.state) == ("job-3", "queued")
    assert second.id == "job-4"
    assert json.loads(made.bodies[0]) == {"run": "python train.py"}
    keys = [request.headers["idempotency-key"] for request in made.seen]
    assert all(re.fullmatch(r"[0-9a-f-]{36}", key) for key in keys)
    assert keys[0] != keys[1]
    assert made.seen[0].headers["content-type"] == "application/json"


def test_a_key_that_was_given_is_used(client: Both) -> None:
    assert client.submit({"run": "x"}, idempotency_key="mine") == client.submit({"run": "x"}, idempotency_key="mine")


def test_a_job_is_sent_in_one_form_whichever_way_it_was_written(client: Both, made: Made, tmp_path: Path) -> None:
    text = "run: python träin.py\npriority: 2\nresources: {accelerators: [A100, V100]:2}\ndeadline: 1h\n"
    file = tmp_path / "job.yaml"
    file.write_text(text, encoding="utf-8")
    fields = {
        "run": "python träin.py",
        "weight": 2,
        "resources": {"accelerators": {"A100": 2, "V100": 2}},
        "deadline": 3600,
    }
    for given in (text, file, fields, parse_job(text, "here")):
        client.submit(given)
    sent = {**fields, "resources": {"accelerators": "[a100, v100]:2"}}
    assert [json.loads(body) for body in made.bodies] == [sent] * 4
    assert {request.headers["content-type"] for request in made.seen} == {"application/json"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("job.yaml", "give Path('job.yaml') to submit a file"),
        (Path("/no/such/job.yaml"), "/no/such/job.yaml: cannot be read: No such file or directory"),
        ({"run": object()}, "cannot be written as JSON"),
        ({"run": "x", "wieght": 2}, "job: wieght: no such field, did you mean 'weight'?"),
        ("run: x\nsteps: many\n", 'job: steps: "many" given, expected a whole number'),
        ({"run": "x", "weight": float("nan")}, "weight: nan given, expected a finite number"),
        ({"run": "x", "throughputs": {"v100": float("inf")}}, "throughputs.v100: inf given, expected a finite number"),
        (7, "int given, expected a mapping"),
    ],
)
def test_what_is_no_job_is_refused_without_asking(client: Both, made: Made, given: Any, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        client.submit(given)
    assert made.seen == []


def test_a_dry_run_predicts_and_submits_nothing(client: Both, made: Made) -> None:
    tried = client.submit({"run": "x"}, dry_run=True)
    assert isinstance(tried, DryRun)
    assert tried.job.id == ""
    assert tried.prediction is not None
    assert tried.prediction.basis == "the engine was run ahead"
    assert tried.emulated
    assert len(made.jobs) == 2
    assert "idempotency-key" not in made.seen[0].headers


def test_jobs_come_page_by_page(client: Both, made: Made) -> None:
    made.jobs = [job(number) for number in range(1, 1203)]
    assert [one.number for one in client.jobs()] == list(range(1, 1203))
    assert [request.query_params["limit"] for request in made.seen] == ["500"] * 3
    assert [one.number for one in client.jobs(limit=501)] == list(range(1, 502))
    assert [request.query_params["limit"] for request in made.seen[3:]] == ["500", "1"]
    assert client.jobs(limit=0) == []


def test_jobs_are_filtered_by_the_server(client: Both, made: Made) -> None:
    assert [one.id for one in client.jobs(state="running")] == ["job-1"]
    client.jobs(state=["queued", "failed"], team="vision", order="oldest")
    query = made.seen[-1].query_params
    assert query.getlist("state") == ["queued", "failed"]
    assert (query["team"], query["order"]) == ("vision", "oldest")


def test_one_job_comes_with_all_that_happened_to_it(client: Both) -> None:
    found = client.job("job-1")
    assert found.steps_done == 750
    assert [one.outcome for one in found.attempts] == ["preempted", None]
    assert found.leases[0].workers == [0, 1]
    assert found.rates[0].steps_per_second == 6.25
    assert found.spec == DETAILS["spec"]
    assert found.document["of_a_later_version"] == 1
    assert client.job(found) == found


def test_the_rest_of_the_questions(client: Both, made: Made) -> None:
    assert client.cancel("job-2") == "cancelled"
    told = client.explain("job-2")
    assert (told.code, told.position, told.prediction.latest_at > told.prediction.start_at) == (
        "NotEnoughWorkers",
        2,
        True,
    )
    assert [worker.name for worker in client.workers()] == ["v100/0", "v100/1", "k80/0"]
    assert [worker.state for worker in client.drain("k80", "v100/1")] == ["drained"] * 2
    assert [worker.state for worker in client.drain("k80", on=False)] == ["free"]
    assert json.loads(made.bodies[-1]) == {"workers": ["k80"], "on": False}
    assert client.status().jobs["succeeded"] == 4
    assert client.metrics() == "fairway_jobs 2\n"
    assert [token.name for token in client.tokens()] == ["alice"]
    token = client.create_token("member", team="vision")
    assert token.token == "fairway_new"
    assert "fairway_new" not in repr(token)
    assert json.loads(made.bodies[-1]) == {"role": "member", "team": "vision"}
    assert client.revoke_token("1f0c") is None
    assert [entry.kind for entry in client.journal(kind="start")] == ["start"]


def test_ids_are_written_so_that_they_cannot_mean_another_path(client: Both, made: Made) -> None:
    with pytest.raises(NotFoundError, match="404"):
        client.job("../status")
    assert made.seen == []  # no route is called so
    with pytest.raises(InputError, match="expected the id of one"):
        client.job("..")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InputError),
        (401, NotAllowedError),
        (403, NotAllowedError),
        (404, NotFoundError),
        (409, ConflictError),
        (413, InputError),
        (415, InputError),
        (422, InputError),
        (500, ServiceError),
    ],
)
def test_refusals_are_errors_with_the_servers_line(
    client: Both, made: Made, status: int, kind: type[Exception]
) -> None:
    made.failures = [problem(status, "run: the command 'x' does not exist; install it", "bad-input")]
    with pytest.raises(kind, match=r"^run: the command 'x' does not exist; install it$") as caught:
        client.submit({"run": "x"})
    assert isinstance(caught.value, FairwayError)
    assert (caught.value.status, caught.value.code) == (status, "bad-input")
    assert isinstance(caught.value, InputError) == (status < 500)
    assert len(made.seen) == 1


def test_without_a_token_the_error_says_where_one_could_come_from(
    made: Made, connect: Callable[..., Both], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    monkeypatch.delenv("FAIRWAY_TOKEN", raising=False)
    with pytest.raises(NotAllowedError, match="there is no token here: give --token, or set FAIRWAY_TOKEN"):
        connect(made.address, None).status()
    with pytest.raises(NotAllowedError, match=r"^the token is not known here$"):
        connect(made.address, "fairway_wrong").status()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (PlainTextResponse("hello"), "is not a Fairway of this version: text/plain instead of a JSON object"),
        (JSONResponse([]), "is not a Fairway of this version: application/json instead of a JSON object"),
        (JSONResponse({"state": "queued"}), "is not a Fairway of this version: its answer lacks 'id'"),
        (PlainTextResponse("no", 404), "is not Fairway, or something between is in its way: 404 Not Found"),
        (PlainTextResponse("no", 599), "is not Fairway, or something between is in its way: 599"),
        (RedirectResponse("https://elsewhere"), "refers to https://elsewhere; give the address itself"),
    ],
)
def test_what_is_no_answer_of_a_fairway_is_said_to_be(client: Both, made: Made, answer: Any, said: str) -> None:
    made.failures = [answer]
    with pytest.raises(ServiceError, match=re.escape(said)) as caught:
        client.job("job-1")
    assert made.address in str(caught.value)


def test_waiting_for_a_job_ends_with_it_or_with_patience(client: Both, made: Made) -> None:
    with pytest.raises(TimeoutError, match=r"job job-1 is still running after 0.2 s"):
        client.wait("job-1", timeout=0.2)
    made.failures = [JSONResponse(running(1)), JSONResponse(job(1, "succeeded"))]
    assert client.wait(Job(id="job-1", state="running")).state == "succeeded"


def test_the_token_is_sent_in_the_header_and_nowhere_else(client: Both, made: Made) -> None:
    client.status()
    assert made.seen[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in str(made.seen[0].url)


def test_the_asynchronous_client_asks_several_things_at_once(made: Made) -> None:
    async def asked() -> list[str]:
        async with AsyncClient(made.address, TOKEN) as client:
            found = await asyncio.gather(*(client.submit({"run": "x"}) for _ in range(20)))
            return sorted(job.id for job in found)

    assert len(set(asyncio.run(asked()))) == 20
