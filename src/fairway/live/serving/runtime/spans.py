"""OpenTelemetry spans of a worker, if the operator wants them: one for each request that it received, one for each run.

A request that comes with a W3C `traceparent` belongs to that trace, others begin one. The span travels with what runs
for a request on other workers, so that a trace shows where a request has been. Without an address for spans, nothing of
OpenTelemetry is imported.
"""

from __future__ import annotations

import time
from typing import Any

from fairway.errors import InputError

_NANO = 1_000_000_000
_SINCE = time.time_ns() - time.monotonic_ns()
"""When the monotonic clock began, the same for all spans, so that none seems to begin before what it is part of."""


class Spans:
    """No spans; the way it is unless there is an address for them."""

    @staticmethod
    def of(address: str | None, worker: str) -> Spans:
        """Spans that go to an address, or none."""
        return Spans() if address is None else _RealSpans(address, worker)

    def began(self, key: int, workflow: str, trace: str | None) -> None:
        """A client asks for a workflow."""

    def passed(self, key: int, trace: str | None) -> None:
        """Something of a request comes from another worker."""

    def trace_of(self, key: int) -> str | None:  # noqa: ARG002
        """The `traceparent` for other workers that run stages of a request."""
        return None

    def ran(self, key: int, stage: str, began: float, ended: float, problem: str | None) -> None:
        """A stage has run; the times are those of the monotonic clock."""

    def ended(self, key: int, outcome: str) -> None:
        """A request that was received here is over."""

    def forget(self, key: int) -> None:
        """A request that was received elsewhere is over."""

    def close(self) -> None:
        """Send what is left."""


class _RealSpans(Spans):
    def __init__(self, address: str, worker: str) -> None:
        provider = _provider(address, worker)
        from opentelemetry import trace  # noqa: PLC0415 - optional, and slow to import
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        self._tracer, self._api, self._form = provider.get_tracer("fairway"), trace, TraceContextTextMapPropagator()
        self._provider = provider
        self._open: dict[int, Any] = {}
        self._traces: dict[int, str] = {}

    def began(self, key: int, workflow: str, trace: str | None) -> None:
        now, server = _wall(time.monotonic()), self._api.SpanKind.SERVER
        span = self._tracer.start_span(workflow, self._context(trace), server, start_time=now)
        carrier: dict[str, str] = {}
        self._form.inject(carrier, self._api.set_span_in_context(span))
        self._open[key] = span
        self._traces[key] = carrier["traceparent"]

    def passed(self, key: int, trace: str | None) -> None:
        if trace is not None:
            self._traces[key] = trace

    def trace_of(self, key: int) -> str | None:
        return self._traces.get(key)

    def ran(self, key: int, stage: str, began: float, ended: float, problem: str | None) -> None:
        span = self._tracer.start_span(stage, self._context(self._traces.get(key)), start_time=_wall(began))
        if problem is not None:
            span.add_event("exception", {"exception.message": problem})
            span.set_status(self._api.StatusCode.ERROR)
        span.end(_wall(ended))

    def ended(self, key: int, outcome: str) -> None:
        span = self._open.pop(key, None)
        self.forget(key)
        if span is not None:
            span.set_attribute("fairway.outcome", outcome)
            if outcome not in {"replied", "cancelled"}:
                span.set_status(self._api.StatusCode.ERROR)
            span.end(_wall(time.monotonic()))

    def forget(self, key: int) -> None:
        self._traces.pop(key, None)

    def close(self) -> None:
        self._provider.shutdown()

    def _context(self, trace: str | None) -> Any:
        return self._form.extract({} if trace is None else {"traceparent": trace})


def check_traces(address: str | None) -> None:
    """Refuse to send spans if OpenTelemetry is not installed, or to what is no address."""
    if address is None:
        return
    if not address.startswith(("http://", "https://")):
        raise InputError(f"traces: '{address}' given, expected the address of an OTLP collector, as http://host:4318")
    _parts()


def _provider(address: str, worker: str) -> Any:
    provider_of, resource_of, processor_of, exporter_of = _parts()
    provider = provider_of(resource=resource_of({"service.name": "fairway", "service.instance.id": worker}))
    provider.add_span_processor(processor_of(exporter_of(endpoint=f"{address.rstrip('/')}/v1/traces")))
    return provider


def _parts() -> tuple[Any, Any, Any, Any]:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError:
        raise InputError("traces: OpenTelemetry is not installed; install Fairway with its extra 'traces'") from None
    return TracerProvider, Resource.create, BatchSpanProcessor, OTLPSpanExporter


def _wall(monotonic: float) -> int:
    """A time of the monotonic clock as OpenTelemetry wants it."""
    return _SINCE + int(monotonic * _NANO)
