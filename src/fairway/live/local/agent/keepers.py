"""The agent's side of keepers: sets one on a run, asks it to stop, looks whether it lives, and clears up after it.

A keeper may be set on the same run again, after a crash, and the run is still run once only: the claim decides.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import Protocol

from fairway.live.backend.channel import LeaseState
from fairway.live.local.agent.nurseries import Forked, Nursery
from fairway.live.local.container import remove_containers
from fairway.live.local.identity import ProcessIdentity, kill_remains, process_row, send_signal
from fairway.live.local.run_files import RunFiles
from fairway.live.machine.containment import Containment, group_at


class Spawned(Protocol):
    """A process that was started, as far as it concerns the agent that started it."""

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        ...


class Keepers(Protocol):
    """What the table of runs needs of keepers; those of tests live in virtual time."""

    def start(self, files: RunFiles) -> Spawned:
        """Set a keeper on a run that was prepared; one that is kept already is left alone."""
        ...

    def has_keeper(self, files: RunFiles) -> bool:
        """Whether a keeper, dead or alive, has claimed the run."""
        ...

    def is_alive(self, files: RunFiles) -> bool:
        """Whether the keeper of the run lives."""
        ...

    def watch(self, files: RunFiles) -> None:
        """Let the agent look again as soon as the keeper ends."""

    def ask_to_stop(self, files: RunFiles, *, save: bool) -> None:
        """Give notice: with `save` after a checkpoint, otherwise at once. The keeper sees to the rest."""

    def clear_up(self, files: RunFiles) -> bool:
        """Kill what a keeper left behind, and the keeper itself if it still lives; whether all of it is gone."""
        ...


@dataclass(frozen=True, slots=True)
class KeeperProcesses:
    """Keepers as processes of this machine; `watch_process` is called with those whose end matters."""

    watch_process: Callable[[ProcessIdentity], None] = lambda _: None
    nursery: Nursery | None = None
    containment: Containment = field(default_factory=Containment)

    def start(self, files: RunFiles) -> subprocess.Popen[bytes] | Forked:
        """Set a keeper on a run that was prepared; one that is kept already is left alone."""
        forked = None if self.nursery is None else self.nursery.start(files.directory)
        return self.spawn(files) if forked is None else forked

    def spawn(self, files: RunFiles) -> subprocess.Popen[bytes]:
        """Do so with an interpreter of its own, which takes longer to begin."""
        with (files.directory / "keeper.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "fairway.live.local.keeper", str(files.directory)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd="/",
            )

    def has_keeper(self, files: RunFiles) -> bool:
        """Whether a keeper, dead or alive, has claimed the run."""
        return keeper_of(files) is not None

    def is_alive(self, files: RunFiles) -> bool:
        """Whether the keeper of the run lives; one that its job has stopped goes on."""
        keeper = keeper_of(files)
        if keeper is None or not keeper.alive:
            return False
        row = process_row(keeper.pid)
        if row is not None and row.state == "T":
            send_signal(keeper, signal.SIGCONT)
        return True

    def watch(self, files: RunFiles) -> None:
        """Let the agent look again as soon as the keeper ends."""
        keeper = keeper_of(files)
        if keeper is not None:
            self.watch_process(keeper)

    def ask_to_stop(self, files: RunFiles, *, save: bool) -> None:
        """Give notice: with `save` after a checkpoint, otherwise at once. The keeper sees to the rest."""
        keeper = keeper_of(files)
        how = signal.SIGUSR1
        try:
            write_notice(files, save=save)
        except OSError:  # on a full disk there is no room for a notice, but the wish to stop need not wait for some
            if keeper is None:
                if not files.directory.is_dir():  # a job has removed it; the next look at the run ends it for that
                    return
                raise
            how = signal.SIGTERM if save else signal.SIGUSR2
        if keeper is not None:
            send_signal(keeper, how)
            send_signal(keeper, signal.SIGCONT)  # a stopped keeper would not hear of it

    def clear_up(self, files: RunFiles) -> bool:
        """Kill what a keeper left behind, and the keeper itself if it still lives; whether all of it is gone."""
        keeper, order = keeper_of(files), files.order()
        group = self.containment.group_of(files.directory.name) if order is None else group_at(order.groups)
        # The keeper first, which is not in the group, and what it has started before there was one.
        gone = kill_remains(keeper, files.mark) and group.kill()
        group.remove()
        if order is not None and order.container is not None:
            Thread(target=remove_containers, args=(order,), name="fairway-containers", daemon=True).start()
        return gone


def keeper_of(files: RunFiles) -> ProcessIdentity | None:
    """Which process keeps the run, dead or alive; None if no keeper has claimed it yet."""
    claim = files.claimed_by()
    with suppress(KeyError, TypeError, ValueError):
        return ProcessIdentity.of(claim) if claim else None
    return None


def write_notice(files: RunFiles, *, save: bool) -> str:
    """Write into the lease how the job is to stop, and give it back; what was to stop at once is not asked to save."""
    lease = files.lease() or LeaseState(0)
    wish = "save" if save and lease.stop != "now" else "now"
    if lease.stop != wish:
        files.write_lease(replace(lease, stop=wish))
    return wish
