"""Which directories of runs are there though no run needs them, and how they go.

A directory is left behind where an agent was killed before it had written a run down, or after it had forgotten one.
A run may live in it, if the state of the agent was lost: its directory is not removed under it.
"""

from __future__ import annotations

import logging
from collections.abc import Set
from pathlib import Path

from fairway.live.local.agent.disposal import Disposal
from fairway.live.local.agent.keepers import Keepers
from fairway.live.local.run_files import RunFiles

_LOG = logging.getLogger(__name__)


class RunDirectories:
    """The directories of the runs of one machine, and those of their channels."""

    def __init__(self, directory: Path, keepers: Keepers) -> None:
        self._directory, self._keepers = directory, keepers
        self._disposal = Disposal()

    def clear(self, known: Set[str]) -> set[str]:
        """Remove all but the directories that are known; the names of those in which a run lives, until it ends."""
        parts = [self._directory / part for part in ("runs", "channels")]
        unknown = {found.name for part in parts for found in part.iterdir()} - known
        return {name for name in unknown if self._lives_on(RunFiles(self._directory / "runs" / name))}

    def remove(self, files: RunFiles) -> None:
        """Remove what a run has left, in time."""
        for directory in (files.directory, files.channel.directory):
            self._disposal.remove(directory)

    def finish(self, seconds: float) -> None:
        """Wait until all is removed, but no longer than this."""
        self._disposal.finish(seconds)

    def _lives_on(self, files: RunFiles) -> bool:
        """Remove a run that was never accepted, or is forgotten; one that lives, its state lost, is ended.

        Returns whether it lives on for as long as that takes.
        """
        if self._keepers.is_alive(files):
            _LOG.warning("a run that the agent has no record of is asked to stop: %s", files.directory)
            self._keepers.ask_to_stop(files, save=True)
            return True
        self._keepers.clear_up(files)
        self.remove(files)
        return False
