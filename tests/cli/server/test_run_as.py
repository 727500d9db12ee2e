"""Jobs run as other users, who reach neither the token nor the store nor the files of other teams."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.cli.server.run_as import prepare_directory, read_run_as, unprotected
from fairway.errors import InputError
from tests.cli.installation import Installation, until

ALL, VISION = "daemon", "nobody"


def exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs as other users")
needs_users = pytest.mark.skipif(not exists(ALL) or not exists(VISION), reason=f"needs the users {ALL} and {VISION}")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everybody may pass through, which those of pytest are not."""
    made = Path(tempfile.mkdtemp(prefix="fairway-run-as-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@needs_root
@needs_users
def test_a_job_reads_neither_the_token_nor_the_store_nor_the_files_of_another_team(place: Path) -> None:
    options = ("--emulate", "v100=2", "--port", "0", "--round", "1s", "--run-as", ALL, "--run-as", f"vision={VISION}")
    with Installation(place, *options) as live:
        live.up()
        home = live.home
        theirs = f"id -un; echo secret > $FAIRWAY_CHECKPOINT_DIR/state; echo $HOME >> /dev/stdout; sleep 600 # {place}"
        vision = live.printed("submit", "--quiet", "--team", "vision", "--workdir", "/", "--", theirs).strip()
        kept = home / "agent" / "checkpoints" / vision / "state"
        until(kept.exists, "for the job of the team to save")
        channel = next((home / "agent" / "channels").iterdir())
        wanted = [home / "token", home / "fairway.db", home / "agent/state.json", home / "agent/agent.log", kept]
        wanted += [channel / "lease.json", *(home / "agent/runs").glob("*/order.json"), home / "agent/logs", home]
        wanted += [*(home / "agent/logs").glob("*/*.log")]
        assert all(path.exists() for path in wanted)
        tries = "; ".join(f"cat {path}" for path in wanted)
        other = live.printed(
            "submit", "--quiet", "--workdir", "/", "--", f"id -un; {tries}; touch {kept}; true"
        ).strip()
        until(lambda: live.state_of(other) == "succeeded", "for the other job to end")
        said = live.printed("logs", other)
        assert said.splitlines()[1] == ALL
        assert said.count("Permission denied") == len(wanted) + 1, said
        assert "secret" not in said
        assert live.printed("logs", vision).splitlines()[1:] == [VISION, pwd.getpwnam(VISION).pw_dir]
        live.printed("cancel", vision)
        until(lambda: live.state_of(vision) == "cancelled", "for the job of the team to end")
        printed = live.end(signal.SIGINT)
        assert "can read the admin's token" not in printed


@needs_root
@needs_users
def test_a_directory_that_a_job_of_another_user_cannot_enter_is_named(place: Path) -> None:
    with Installation(place, "--emulate", "v100=1", "--port", "0", "--run-as", ALL) as live:
        live.up()
        (place / "closed").mkdir(mode=0o700)
        done = live.in_a_process(
            "submit", "--follow", "--retries", "0", "--workdir", str(place / "closed"), "--", "echo here"
        )
        assert done.returncode == 1
        assert f"workdir {place}/closed: cannot be entered by user '{ALL}'" in done.stderr


def test_without_run_as_a_start_says_what_is_not_protected(tmp_path: Path) -> None:
    with Installation(tmp_path, "--emulate", "v100=1", "--port", "0") as live:
        live.up()
        printed = live.end(signal.SIGTERM)
        (said,) = [line for line in printed.splitlines() if line.startswith("note: jobs run as")]
        assert "can read the admin's token, the store and each other's files" in said


def test_users_that_cannot_be_used_are_refused_in_one_line(tmp_path: Path) -> None:
    for given, message in (
        (["no-such-user"], "no user 'no-such-user' on this machine"),
        (["root"], "'root' is root"),
        (["=nobody"], "expected a user, or TEAM=USER"),
        (["vision="], "expected a user, or TEAM=USER"),
        (["nobody", "daemon"], "two users given for all jobs"),
        (["vision=nobody,vision=daemon"], "two users given for team 'vision'"),
    ):
        with pytest.raises(InputError, match=message):
            read_run_as(given)
    assert list(unprotected({"": "nobody"})) == []
    assert "jobs of teams without --run-as" in next(unprotected({"vision": "nobody"}))


@needs_root
@needs_users
def test_a_directory_that_the_user_cannot_get_to_is_refused(place: Path) -> None:
    (place / "closed").mkdir(mode=0o700)
    with pytest.raises(InputError, match="user 'nobody' cannot get to"):
        prepare_directory(place / "closed" / "home", {"": "nobody"})


@pytest.mark.skipif(os.geteuid() == 0, reason="root can run jobs as other users")
@needs_users
def test_only_root_can_run_jobs_as_another_user() -> None:
    with pytest.raises(InputError, match="only root can run jobs as another user"):
        read_run_as([VISION])
