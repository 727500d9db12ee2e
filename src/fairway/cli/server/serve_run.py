"""What `fairway serve` does: binds the address, starts the workers, serves, and takes everything down again.

Whatever can be refused is refused before a worker is started, and nothing is left behind if one cannot start.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from fairway.cli.given import size_given, span_given
from fairway.cli.server.quick_profile import quick_profile
from fairway.configure.slices.parts import Slice, slices_of
from fairway.errors import InputError
from fairway.live.backend.accelerators import found_accelerators
from fairway.live.serving.application.thread_choice import ThreadChoice, choose_threads
from fairway.live.serving.seams.backend import accelerators_under
from fairway.live.serving.supervise.open_files import allow_many_files
from fairway.live.serving.supervise.settings import ServingSettings
from fairway.live.serving.supervise.supervisor import Supervisor, memory_directory, tallies
from fairway.service.http.server import HttpServer, bound_socket, check_reach
from fairway.service.http.sites import Sites
from fairway.service.inference.app import create_inference_app
from fairway.service.inference.ingress import INGRESS_PROGRAM, IngressOptions, ingress_files

_AUTO = "auto"
_LOCAL, _RAY = "local", "ray"
_THIS_MACHINE = "127.0.0.1"
_WORKERS = 2

_FOR_MODELS = 0.9
"""The part of a GPU's memory that models may take, unless the budget is given; runs need some, too."""


@dataclass(frozen=True, slots=True)
class ServeOptionsGiven:
    """The options of `fairway serve` as they were given."""

    target: str
    workers: int | None
    memory: str | None
    threads: str
    scheduler: str
    profile: Path | None
    slo: str | None
    most_open: int
    directory: Path | None
    host: str
    port: int
    most_body: str
    certificate: Path | None
    key: Path | None
    plain_text: bool
    no_token: bool
    pinned: tuple[str, ...]
    traces: str | None
    stage_limit: str | None = None
    load_limit: str | None = None
    log_limit: str = "256MB"
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    measures: bool = True
    backend: str = _LOCAL
    address: str | None = None
    slices: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse a backend that is none, and what is not for the one that was given."""
        if self.backend not in {_LOCAL, _RAY}:
            raise InputError(f"--backend: '{self.backend}' given, expected {_LOCAL} or {_RAY}")
        if self.address is not None and self.backend != _RAY:
            raise InputError(f"--address: {self.address} given without --backend {_RAY}, which it is for")
        if self.slices and self.backend != _LOCAL:
            raise InputError(f"--slice: {self.slices[0]} given, but slices are for this machine; leave out --backend")

    def settings(self, directory: Path, memory: Path) -> ServingSettings:
        """How to serve, with as many threads as were given; `chosen` says how many that should be with auto."""
        elsewhere = accelerators_under(self.backend, self.address) if self.workers is None else None
        found = found_accelerators() if self.workers is None and elsewhere is None else []
        memory_bytes = None if self.memory is None else size_given("--memory", self.memory)
        sizes = [each.memory_bytes for each in found if each.memory_bytes is not None]
        if memory_bytes is None and sizes:
            memory_bytes = int(_FOR_MODELS * min(sizes))
        return ServingSettings(
            target=self.target,
            directory=directory,
            memory_directory=memory,
            workers=self.workers or elsewhere or len(found) or _WORKERS,
            backend=self.backend,
            address=self.address,
            wire_certificate=None if self.certificate is None else self.certificate.absolute(),
            wire_key=None if self.key is None else self.key.absolute(),
            memory_bytes=memory_bytes,
            devices=tuple(each.device for each in found if each.device is not None),
            scheduler=self.scheduler,
            profile=None if self.profile is None else self.profile.absolute(),
            most_open=self.most_open,
            most_bytes=size_given("--most-body", self.most_body),
            threads=1 if self.threads == _AUTO else _number("--threads", self.threads),
            pinned=self.pinned,
            traces=self.traces,
            slo_seconds=None if self.slo is None else span_given("--slo", self.slo),
            stage_limit_seconds=None if self.stage_limit is None else span_given("--stage-limit", self.stage_limit),
            load_limit_seconds=None if self.load_limit is None else span_given("--load-limit", self.load_limit),
            log_bytes=size_given("--log-limit", self.log_limit),
            slices=_slices(self.slices, memory_bytes),
        )

    def chosen(self, settings: ServingSettings) -> tuple[ServingSettings, ThreadChoice | None]:
        """The settings with the threads that were chosen, and the choice, if there was one to make."""
        if self.threads != _AUTO:
            return settings, None
        if settings.profile is None:
            raise InputError("--threads: auto given without --profile; measure with 'fairway profile --threads 1,2'")
        choice = choose_threads(list(settings.application().workflows.values()))
        cores = len(os.sched_getaffinity(0))
        workers = settings.workers if settings.devices else self.workers or max(1, cores // choice.threads)
        return replace(settings, threads=choice.threads, workers=workers), choice


def run(asked: ServeOptionsGiven) -> None:
    """Serve until SIGINT or SIGTERM."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    for one in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, _stopped)  # until the server takes signals, which may be a while
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` would have it, for applications in this directory
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))
    asked.check()
    sites = Sites(asked.allow_hosts, asked.allow_origins)
    check_reach(asked.host, asked.certificate, asked.key, plain_text=asked.plain_text)
    allow_many_files()
    listening = bound_socket(asked.host, asked.port) if asked.backend == _LOCAL else None
    own = asked.directory is None
    directory = Path(tempfile.mkdtemp(prefix="fairway-serve-")) if asked.directory is None else asked.directory
    try:
        settings = asked.settings(directory.expanduser().absolute(), memory_directory())
        if settings.profile is None and asked.measures and asked.threads != _AUTO:
            measured = quick_profile(
                asked.target, settings.directory, threads=settings.threads, workers=settings.workers
            )
            settings = replace(settings, profile=measured)
        settings, choice = asked.chosen(settings)
        with Supervisor(settings) as supervisor:
            token = None if asked.no_token else _token(settings.directory)
            if listening is None:
                _serve_from_nodes(asked, supervisor, token, choice)
                return
            server = HttpServer(
                create_inference_app(supervisor, token=token),
                asked.host,
                listening,
                certificate=asked.certificate,
                key=asked.key,
                plain_text=asked.plain_text,
                ready=lambda address: _ready(supervisor, address, token, choice),
                sites=sites,
            )
            server.run()
            _ignore_signals()
    finally:
        if listening is not None:
            listening.close()
        if own:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            (directory / "token").unlink(missing_ok=True)
    typer.echo("stopped")


def _serve_from_nodes(
    asked: ServeOptionsGiven, supervisor: Supervisor, token: str | None, choice: ThreadChoice | None
) -> None:
    """Answer over HTTP on every node of a cluster, until a signal comes."""
    files = ingress_files(
        IngressOptions(
            host=None if asked.host == _THIS_MACHINE else asked.host,
            port=asked.port,
            token=token,
            plain_text=asked.plain_text,
            allow_hosts=asked.allow_hosts,
            allow_origins=asked.allow_origins,
        ),
        asked.certificate,
        asked.key,
    )
    addresses = supervisor.run_beside(INGRESS_PROGRAM, files)
    _ready(supervisor, ", ".join(addresses), token, choice)
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, lambda *_: None)
    signal.pause()
    _ignore_signals()
    typer.echo("stopped")


def _stopped(*_: object) -> None:
    _ignore_signals()  # once is enough, and what follows should not be disturbed
    raise SystemExit(0)


def _ignore_signals() -> None:
    for one in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)


def _token(directory: Path) -> str:
    """A new token, in a file that only its owner can read."""
    token = f"fairway_{secrets.token_urlsafe(32)}"
    path = directory / "token"
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{token}\n")
    return token


def _ready(supervisor: Supervisor, address: str, token: str | None, choice: ThreadChoice | None) -> None:
    settings = supervisor.settings
    memory = "" if settings.memory_bytes is None else f" with {settings.memory_bytes / 1e6:g} MB for models each"
    names = ", ".join(f"/workflows/{name}" for name in supervisor.workflows)
    typer.echo(f"Fairway serves {names} at {address}")
    kind = "emulated accelerators" if settings.emulated else "GPUs of this machine"
    if settings.backend == _RAY:
        kind = "one for each accelerator of the Ray cluster"
    typer.echo(f"workers: {settings.workers}{memory} ({kind}), scheduler {settings.scheduler}")
    if settings.slices:
        _said_of_slices(settings)
    if choice is not None:
        typer.echo(f"threads for each worker: {choice}")
    typer.echo(f"sockets, logs{'' if token is None else ' and the token'}: {settings.directory}")
    typer.echo("Ctrl-C stops it")


def _slices(given: tuple[str, ...], memory_bytes: int | None) -> tuple[tuple[str, Slice], ...]:
    try:
        return tuple(slices_of(given, memory_bytes).items())
    except InputError as error:
        raise InputError(f"--slice: {error}") from None


def _said_of_slices(settings: ServingSettings) -> None:
    """Which slices there are, and what of them nothing holds."""
    for name, own in settings.slices:
        typer.echo(f"slice of {name}: {own}")
    for caveat in dict.fromkeys(said for tally in tallies(settings).values() for said in tally["not_enforced"]):
        typer.echo(f"not enforced: {caveat}")


def _number(option: str, given: str) -> int:
    if not (given.isascii() and given.isdecimal() and int(given) >= 1):
        raise InputError(f"{option}: '{given}' given, expected a whole number of at least 1, or {_AUTO}")
    return int(given)
