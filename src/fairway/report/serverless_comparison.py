"""What the table of serverless runs shows: requests in time against dollars, and how schedulers came to it."""

from __future__ import annotations

from fairway.report.serving_comparison import Measure

SERVERLESS_MEASURES: tuple[Measure, ...] = (
    Measure("in time", "requests answered within their SLO", "percent", "more", lambda run: run["slo_hit_rate"]),
    Measure(
        "cost per 1000", "dollars for a thousand requests", "dollars", "less", lambda run: run["cost_per_1000_requests"]
    ),
    Measure(
        "p50 latency", "median from arrival to the end", "seconds", "less", lambda run: run["latency_seconds"]["p50"]
    ),
    Measure("p95 latency", "95th percentile", "seconds", "less", lambda run: run["latency_seconds"]["p95"]),
    Measure(
        "p95 of SLO", "95th percentile of latency over SLO", "number", "less", lambda run: run["latency_of_slo"]["p95"]
    ),
    Measure("jobs", "mean jobs of a task", "number", None, lambda run: run["jobs_per_task"]),
    Measure("slices", "mean GPU slices of a task", "number", None, lambda run: run["slices_per_task"]),
    Measure("CPUs", "mean CPUs of a task", "number", None, lambda run: run["cpus_per_task"]),
    Measure("GPU busy", "part of all slices that tasks held", "percent", None, lambda run: run["utilization"]),
    Measure("CPU busy", "part of all CPUs that tasks held", "percent", None, lambda run: run["cpu_utilization"]),
    Measure("local", "inputs that were on the invoker", "percent", None, lambda run: run["local_fetch_rate"]),
    Measure("cold starts", "containers that a job had to wait for", "number", "less", lambda run: run["cold_starts"]),
)
"""All columns; a row has those that any run has a number for."""
