"""What can be seen of an application that is served: its workflows, its workers, and its metrics."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from fairway.service.inference.request import HEADERS
from fairway.workflows.request import WorkflowRequest
from tests.service.inference.conftest import Serving


def test_workflows_can_be_listed(serving: Serving) -> None:
    listed = {each["name"]: each for each in serving.client.get("/workflows").json()["workflows"]}
    assert list(listed) == ["measure", "describe", "reverse", "odd", "sleep", "count", "fail", "endless"]
    assert listed["measure"]["inputs"] == ["blob", "times"]
    assert listed["measure"]["slo_seconds"] == 5.0
    assert listed["count"]["streaming"] is True
    assert listed["sleep"]["stages"] == ["Sleep"]
    assert listed["sleep"]["mermaid"].startswith("flowchart")


def test_the_status_names_every_worker_and_its_models(serving: Serving) -> None:
    serving.client.post("/workflows/measure", content=b"1")
    status = serving.client.get("/status").json()
    assert (status["scheduler"], status["emulated"], status["pinned"]) == ("compass", True, ["Measure"])
    assert [worker["present"] for worker in status["workers"]] == [True, True]
    assert [worker["resident"] for worker in status["workers"]] == [["Measure"], ["Measure"]]


def test_metrics_are_such_that_prometheus_reads_them(serving: Serving) -> None:
    for _ in range(4):
        assert serving.client.post("/workflows/measure", content=b"1").status_code == 200
    serving.client.post("/workflows/fail", json={"text": "x"})
    answer = serving.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}

    def total(family: str, suffix: str = "", **labels: str) -> float:
        return sum(
            sample.value
            for sample in families[f"fairway_serving_{family}"].samples
            if sample.name == f"fairway_serving_{family}{suffix}" and labels.items() <= sample.labels.items()
        )

    assert total("replies", "_total") >= 4
    assert total("slo_met", "_total") >= 4
    assert total("stage_failures", "_total") >= 1
    assert total("refusals", "_total", code="failed") >= 1
    assert total("cache_hits", "_total") >= 4
    assert total("worker_up") == 2
    assert total("model_resident", model="Measure") == 2
    for family in ("planning_seconds", "batch_size"):
        assert total(family, "_count") == total(family, "_bucket", le="+Inf") >= 5
    for family in ("stage_seconds", "stage_wait_seconds"):
        assert total(family, "_count", workflow="measure", stage="Measure") >= 4
    assert total("latency_seconds", "_count", workflow="measure") >= 4
    for family in families.values():
        if family.type == "histogram":
            _check_histogram(family.samples)


def _check_histogram(samples: list) -> None:  # type: ignore[type-arg]
    """Buckets never fall, and the last one is the count."""
    series: dict[tuple, list[tuple[float, float]]] = {}  # type: ignore[type-arg]
    counts = {}
    for sample in samples:
        labels = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
        if sample.name.endswith("_bucket"):
            series.setdefault(labels, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_count"):
            counts[labels] = sample.value
    assert series
    for labels, buckets in series.items():
        assert buckets == sorted(buckets)
        below = [value for _, value in buckets]
        assert below == sorted(below)
        assert below[-1] == counts[labels]


def test_the_openapi_document_tells_of_the_headers_of_a_request(serving: Serving) -> None:
    operation = serving.client.get("/openapi.json").json()["paths"]["/workflows/{name}"]["post"]
    headers = {one["name"]: one for one in operation["parameters"] if one["in"] == "header"}
    assert set(headers) == {"Fairway-Deadline-Seconds", "traceparent"}
    for field, name in HEADERS.items():
        assert headers[name]["description"] == WorkflowRequest.model_fields[field].description
