"""The HTTP side of an application on one of several nodes: a process of its own beside the workers there.

    python -m fairway.service.inference.ingress DIRECTORY HOST PARENT

It prints its address, and answers until its parent ends. Workers of its own node are asked first, those of others when
these have more to do. `HOST` is the node's address: it listens there unless another was given, or at this machine alone
where neither TLS nor the operator allows more.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from fairway.errors import FairwayError
from fairway.hosts import is_this_machine
from fairway.live.durable_file import read_json
from fairway.live.serving.supervise.open_files import allow_many_files
from fairway.live.serving.supervise.parent_process import end_with_parent
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.service.http.server import HttpServer, bound_socket
from fairway.service.http.sites import Sites
from fairway.service.inference.app import create_inference_app

INGRESS_PROGRAM = ("-m", "fairway.service.inference.ingress")
_OPTIONS, _CERTIFICATE, _KEY = "ingress.json", "http-certificate.pem", "http-key.pem"
_THIS_MACHINE = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class IngressOptions:
    """How to answer on every node; without a host, each at its own address."""

    host: str | None
    port: int
    token: str | None
    plain_text: bool
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServedFromElsewhere:
    """An application whose supervisor is another process."""

    settings: ServingSettings
    restarts: int | None = None


def ingress_files(options: IngressOptions, certificate: Path | None, key: Path | None) -> dict[str, bytes]:
    """The files that the program needs in a node's directory."""
    files = {_OPTIONS: json.dumps(asdict(options)).encode()}
    for name, path in ((_CERTIFICATE, certificate), (_KEY, key)):
        if path is not None:
            files[name] = path.read_bytes()
    return files


def server_of(directory: Path, node_host: str, given: Mapping[str, object]) -> HttpServer:
    """The server for a node."""
    options = IngressOptions(**given)  # type: ignore[arg-type]
    certificate, key = (path if path.exists() else None for path in (directory / _CERTIFICATE, directory / _KEY))
    may_go_out = certificate is not None or options.plain_text or is_this_machine(node_host)
    host = options.host or (node_host if may_go_out else _THIS_MACHINE)
    return HttpServer(
        create_inference_app(
            ServedFromElsewhere(ServingSettings.read(directory / "settings.json")), token=options.token
        ),
        host,
        bound_socket(host, options.port),
        certificate=certificate,
        key=key,
        plain_text=options.plain_text,
        ready=lambda address: print(address, flush=True),
        sites=Sites(tuple(options.allow_hosts), tuple(options.allow_origins)),
    )


def main(directory: Path, host: str, parent: int) -> None:
    """Answer until the parent ends."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    end_with_parent(parent)
    allow_many_files()
    given = read_json(directory / _OPTIONS)
    assert given is not None
    server_of(directory, host, given).run()


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    except FairwayError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
