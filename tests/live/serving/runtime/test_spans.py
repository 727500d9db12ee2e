"""OpenTelemetry spans of a served application, as a collector gets them."""

from __future__ import annotations

import gzip
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from fairway.live.serving.clients.client import ServingClient
from fairway.live.serving.clients.client_protocol import ClientRequest, RequestFailedError
from fairway.live.serving.local.unix_socket import connect
from fairway.live.serving.sockets.channel import encoded
from fairway.live.serving.supervise.supervisor import Supervisor

_ROOT = Path(__file__).parents[4]


@contextmanager
def _collector() -> Iterator[tuple[str, list[Any]]]:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415
        ExportTraceServiceRequest,
    )

    spans: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    spans.extend(scope.spans)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", spans
        finally:
            server.shutdown()
            thread.join()


def test_a_request_and_its_stages_are_one_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    monkeypatch.setenv("PYTHONPATH", str(_ROOT), prepend=os.pathsep)
    trace = "0af7651916cd43dd8448eb211c80319c"
    with _collector() as (address, spans):
        supervisor = Supervisor.of(
            "tests.live.serving.served:TRACED", directory=tmp_path / "s", workers=2, scheduler="hash", traces=address
        )
        with supervisor, ServingClient(tmp_path / "s") as client:
            parcel = client._site.values.pack({"x": 1})
            with connect(supervisor.settings.socket(0)) as connection:
                asked = ClientRequest(1, 0, parcel, None, f"00-{trace}-b7ad6b7169203331-01")
                connection.sendall(encoded(asked.message()))
                connection.settimeout(60)
                assert b"reply" in connection.recv(4096)
            with pytest.raises(RequestFailedError):
                client.ask("failing", text="x")
        deadline = time.monotonic() + 30  # workers send what is left when they end
        while len(spans) < 6:
            assert time.monotonic() < deadline, [span.name for span in spans]
            time.sleep(0.05)
    mine = [span for span in spans if span.trace_id.hex() == trace]
    (request,) = [span for span in mine if span.name == "chain"]
    assert request.parent_span_id.hex() == "b7ad6b7169203331"
    stages = [span for span in mine if span.name != "chain"]
    assert len(stages) == 3
    assert all(span.parent_span_id == request.span_id for span in stages)
    assert all(request.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano for span in stages)
    others = {span.name: span for span in spans if span.trace_id.hex() != trace}
    assert set(others) == {"failing", "Fail"}
    assert all(span.status.code == 2 for span in others.values())
    assert others["Fail"].trace_id == others["failing"].trace_id
