"""What `fairway up --print-systemd-unit` prints: a unit that starts the same command at boot, and again if it fails.

systemd stops a service by SIGTERM, on which `fairway up` ends and leaves its jobs running; so only the process itself
is to be stopped (`KillMode=process`), and the next start adopts the jobs. Its agent may make control groups below the
unit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from fairway.errors import InputError

OPTION = "--print-systemd-unit"


def unit_text(words: Sequence[str], directory: Path, *, root: bool | None = None) -> str:
    """The unit for `fairway` with these words; one for the whole machine if `root` starts it, of the user otherwise."""
    as_root = os.geteuid() == 0 if root is None else root
    kept = [word for word in words if word not in {OPTION, "--detach"}]
    command = " ".join(_quoted(word) for word in (sys.executable, "-m", "fairway.cli.main", *kept))
    where = "/etc/systemd/system" if as_root else "~/.config/systemd/user"
    control = "systemctl" if as_root else "systemctl --user"
    return f"""\
# {where}/fairway.service; then: {control} daemon-reload && {control} enable --now fairway
[Unit]
Description=Fairway, a scheduler for training jobs
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
ExecStart={command}
Environment={_quoted(f"FAIRWAY_HOME={directory}")}
WorkingDirectory={_escaped(str(Path.cwd()))}
KillMode=process
Delegate=yes
Restart=on-failure
RestartSec=2
TimeoutStopSec=60
LimitNOFILE=65536

[Install]
WantedBy={"multi-user.target" if as_root else "default.target"}
"""


def _quoted(word: str) -> str:
    """A word as systemd reads it back, whatever is in it."""
    return f'"{_escaped(word).replace(chr(92), chr(92) * 2).replace(chr(34), chr(92) + chr(34)).replace("$", "$$")}"'


def _escaped(word: str) -> str:
    if not word.isprintable():
        raise InputError(f"{OPTION}: {word!a} given, which no line of a unit can have; take the control characters out")
    return word.replace("%", "%%")
