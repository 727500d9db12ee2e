"""As which users jobs run: reads `--run-as`, prepares the directory for them, and says what is not protected.

Only root can start processes of other users. A job of another user reaches its own directories through the names of
those above them, so these may be passed through by all users, and everything else in them is closed.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fairway.errors import InputError
from fairway.service.first_token import ADDRESS_FILE

ALL_OTHERS = ""
"""The team whose user is that of all jobs whose own team has none."""


def read_run_as(given: Sequence[str]) -> dict[str, str]:
    """The user of each team, from `USER` and `TEAM=USER`; that of all others under `ALL_OTHERS`."""
    users: dict[str, str] = {}
    for text in (part.strip() for each in given for part in each.split(",")):
        team, _, user = text.rpartition("=")
        if not user or (not team and "=" in text):
            raise InputError(f"--run-as: '{text}' given, expected a user, or TEAM=USER as in vision=alice")
        if team in users:
            raise InputError(f"--run-as: two users given for {f'team {team!r}' if team else 'all jobs'}, expected one")
        users[team] = user
    for user in users.values():
        try:
            found = pwd.getpwnam(user)
        except KeyError:
            raise InputError(f"--run-as: no user '{user}' on this machine; make one, as by 'useradd {user}'") from None
        if found.pw_uid == 0:
            raise InputError(f"--run-as: '{user}' is root, who can read everything; give a user without such rights")
    if users and os.geteuid() != 0:
        raise InputError("--run-as: only root can run jobs as another user; start as root, or leave it out")
    return users


def prepare_directory(directory: Path, users: Mapping[str, str]) -> None:
    """Let users pass through the directory, to what is theirs in it, and close all the rest of it."""
    if not users:
        return
    directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    for path in directory.iterdir():
        if path.name not in {ADDRESS_FILE, "agent"} and not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o700)
    directory.chmod(0o711)
    for user in sorted(set(users.values())):
        tried = subprocess.run(
            ["/bin/sh", "-c", 'cd "$1"', "sh", str(directory)], user=user, check=False, capture_output=True
        )
        if tried.returncode:
            raise InputError(
                f"--run-as: user '{user}' cannot get to {directory}, since a directory above it is closed; "
                "give another with --directory, as in /var/lib/fairway"
            )


def unprotected(users: Mapping[str, str]) -> Iterator[str]:
    """What jobs can reach that they should not, in a sentence; nothing where each has another user."""
    if ALL_OTHERS in users:
        return
    whose = "jobs of teams without --run-as run" if users else "jobs run"
    remedy = "--run-as USER prevents that" if os.geteuid() == 0 else "only root can prevent that, with --run-as USER"
    me = pwd.getpwuid(os.geteuid()).pw_name
    yield (
        f"{whose} as '{me}', like the controller: they can read the admin's token, the store and each other's files; "
        f"{remedy}"
    )
