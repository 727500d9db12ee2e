"""What `fairway up` does: puts the parts together, says where they are, and takes them down in order.

Whatever can be refused is refused before anything is started: first the options, then the address, then the directory.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import typer

from fairway.allocate.packing.packer import rule_named
from fairway.cli.given import size_given, span_given
from fairway.cli.server.device_memory import device_memory_of
from fairway.cli.server.prices import prices_of
from fairway.cli.server.run_as import prepare_directory, read_run_as, unprotected
from fairway.cli.server.teams import Teams, read_teams_file, refuse_unknown_types
from fairway.cli.words import span
from fairway.client.place import home_directory
from fairway.cluster import Cluster
from fairway.errors import FairwayError, InputError
from fairway.jobs.webhooks import allowed_host, webhook
from fairway.live.backend.accelerators import emulated_accelerators
from fairway.live.serving.supervise.open_files import allow_many_files
from fairway.live.training.controller import Controller
from fairway.live.training.settings import ControllerSettings
from fairway.profiles.files import read_table
from fairway.quantities import cpus_of, memory_of
from fairway.service.context import terms_of
from fairway.service.first_token import ADDRESS_FILE, TOKEN_FILE, ensure_first_token, write_address
from fairway.service.http.server import ServiceServer
from fairway.service.http.sites import Sites
from fairway.service.notifier import Notifier
from fairway.store.database.opening import open_store

_BUILTIN = "builtin"
_RAY = "ray"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The options of `fairway up` as they were given."""

    directory: Path | None
    store: str | None
    emulate: str | None
    time_scale: float
    run_as: tuple[str, ...]
    backend: str
    log_limit: str
    policy: str | None
    round: str
    teams: str | None
    prices: str | None
    profiles: str
    host: str
    port: int
    certificate: Path | None
    key: Path | None
    plain_text: bool
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    notify: str | None = None
    allow_notify: tuple[str, ...] = ()
    cpus: float | None = None
    memory: str | None = None
    device_memory: str | None = None
    packing: str = "fgd"
    address: str | None = None

    def settings(self) -> ControllerSettings:
        """How the controller is to schedule."""
        teams, quotas, classes = Teams({}) if self.teams is None else read_teams_file(self.teams)
        prices = {} if self.prices is None else prices_of(self.prices)
        if self.emulate is not None:  # to be refused here, and not by an agent that was started with it
            emulated_accelerators(self.emulate)
            replace(Cluster.parse(self.emulate), prices=prices)
            refuse_unknown_types(quotas, Cluster.parse(self.emulate).types)
        return ControllerSettings(
            directory=(self.directory or home_directory()).expanduser().absolute(),
            policy=self.policy or ("hierarchical" if teams else "max-min-fairness"),
            round_seconds=span_given("--round", self.round),
            time_scale=self.time_scale,
            emulate=self.emulate,
            backend=self._backend(),
            run_as=read_run_as(self.run_as),
            log_bytes=size_given("--log-limit", self.log_limit),
            entities=teams,
            quotas=quotas,
            priority_classes=classes,
            notify_hosts=tuple(_said_of("--allow-notify", allowed_host, one) for one in self.allow_notify),
            prices=prices,
            cpus=None if self.cpus is None else _said_of("--cpus", cpus_of, self.cpus),
            memory_bytes=None if self.memory is None else _said_of("--memory", memory_of, self.memory),
            packing=rule_named(self.packing),
            device_memory={} if self.device_memory is None else device_memory_of(self.device_memory),
        )

    def _backend(self) -> str:
        """The backend with its address among its options."""
        if self.address is None:
            return self.backend
        name, colon, options = self.backend.partition(":")
        if name != _RAY:
            raise InputError(f"--address: '{self.address}' given for the backend '{name}'; it goes with --backend ray")
        return f"{name}:address={self.address}{',' if colon else ''}{options}"


class _Server(ServiceServer):
    """Remembers by which signal it was stopped."""

    stopped_by: int | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop."""
        self.stopped_by = sig
        super().handle_exit(sig, frame)


def run(options: UpOptions) -> None:
    """Run until SIGINT or SIGTERM."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    allow_many_files()
    settings = options.settings()
    told = None if options.notify is None else _said_of("--notify", webhook, options.notify)
    sites = Sites(options.allow_hosts, options.allow_origins)
    table = None if options.profiles == _BUILTIN else read_table(options.profiles)
    directory = settings.directory
    prepare_directory(directory, settings.run_as)
    store = open_store(options.store or directory)
    try:
        controller = Controller(settings, store, table=table)
        server = _Server(
            controller,
            options.host,
            options.port,
            certificate=options.certificate,
            key=options.key,
            plain_text=options.plain_text,
            ready=lambda address: _ready(controller, address, new_token=new_token),
            sites=sites,
        )
        try:
            controller.start(when_it_fails=server.stop)
        except BaseException:
            server.close()
            raise
        notifier = Notifier(store, lambda: terms_of(controller), address=told, hosts=settings.notify_hosts)
        try:
            new_token = ensure_first_token(store, directory)
            notifier.start()
            server.run()
        finally:
            notifier.stop()
            (directory / ADDRESS_FILE).unlink(missing_ok=True)
            if controller.failure is None:
                _take_down(controller, keep_jobs=server.stopped_by == signal.SIGTERM)
        if controller.failure is not None:
            raise FairwayError(f"the controller has stopped, jobs run on: {controller.failure}")
    finally:
        store.close()


def _said_of(option: str, read: Callable[[Any], T], given: object) -> T:
    try:
        return read(given)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None


def _ready(controller: Controller, address: str, *, new_token: bool) -> None:
    settings = controller.settings
    write_address(settings.directory, address)
    workers = ", ".join(f"{count} {name}" for name, count in controller.cluster.workers.items())
    emulated = " (emulated)" if controller.emulated else ""
    scale = f", time runs {settings.time_scale:g} times as fast" if settings.time_scale != 1 else ""
    typer.echo(f"Fairway answers at {address}")
    typer.echo("dashboard: the same address in a browser; log in with a token")
    typer.echo(f"accelerators: {workers}{emulated}")
    typer.echo(f"policy: {settings.policy}, rounds of {span(settings.round_seconds)}{scale}")
    typer.echo(f"state: {controller.store.address}")
    typer.echo(f"token of the admin{', just made' if new_token else ''}: {settings.directory / TOKEN_FILE}")
    for caveat in [*unprotected(settings.run_as), *controller.caveats]:
        typer.echo(f"note: {caveat}")
    typer.echo("Ctrl-C stops it; jobs save a checkpoint first, and go on at the next start")


def _take_down(controller: Controller, *, keep_jobs: bool) -> None:
    if keep_jobs:
        typer.echo("stopped; jobs run on, and are adopted at the next start")
        controller.stop()
        return
    typer.echo("stopping: jobs save a checkpoint; Ctrl-C again leaves them running")
    try:
        away = controller.shut_down()
    except KeyboardInterrupt:
        controller.stop()
        typer.echo("stopped; jobs run on, and are adopted at the next start")
    else:
        typer.echo(
            "stopped" if away is None else f"stopped, but jobs may run on, to be adopted at the next start: {away}"
        )
