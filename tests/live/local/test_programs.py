"""Which programs are refused before they are started, and why; what cannot be known beforehand is let through."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from fairway.errors import InputError
from fairway.live.backend.commands import JobProgram
from fairway.live.local import programs
from fairway.live.local.programs import refuse_what_cannot_run

LONGEST = 131071
"""MAX_ARG_STRLEN of Linux is 32 pages, 131,072 bytes with the zero at the end (execve(2))."""


def program(run: str | tuple[str, ...] = "true", **fields: object) -> JobProgram:
    return replace(JobProgram(run=run), **fields)  # type: ignore[arg-type]


def refused(given: JobProgram) -> str:
    with pytest.raises(InputError) as caught:
        refuse_what_cannot_run(given)
    return str(caught.value)


@pytest.mark.parametrize(
    "run",
    [
        "ls -l",
        "  # a comment\n  ls",
        "LANG=C SIZE=3 ls",
        "PATH=/nowhere:$PATH no-such-program",
        "cd /tmp && no-such-program",
        "$SHELL -c true",
        "no-such-program() { true; }; no-such-program",
        "no-such-program () { true; }",
        "if true; then ls; fi",
        '"quoted" word',
        ("ls", "-l"),
    ],
)
def test_what_a_shell_makes_of_a_script_is_not_guessed(run: str | tuple[str, ...]) -> None:
    refuse_what_cannot_run(program(run))


@pytest.mark.parametrize(
    "run",
    [
        "no-such-program --fast",
        "no-such-program; ls",
        "no-such-program&",
        "# a comment\nno-such-program",
        "LANG=C no-such-program",
        ("no-such-program",),
        ("cd", "/tmp"),
    ],
)
def test_a_first_word_that_no_program_has_is_refused(run: str | tuple[str, ...]) -> None:
    word = run[0] if isinstance(run, tuple) else "no-such-program"
    if word == "cd" and any((Path(each) / "cd").exists() for each in os.environ["PATH"].split(":")):
        pytest.skip("this machine has a program of that name")
    assert refused(program(run)).startswith(f"run: the command '{word}' does not exist on this machine")


def test_a_program_is_looked_for_where_the_job_looks(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("#!/bin/sh\n")
    (tmp_path / "mine").chmod(0o755)
    refuse_what_cannot_run(program("mine", envs={"PATH": str(tmp_path)}))
    assert "'ls' does not exist" in refused(program("ls", envs={"PATH": str(tmp_path)}))


def test_a_path_is_meant_from_the_workdir_and_has_to_be_a_program(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    assert refused(program("./train.sh", workdir=str(tmp_path))) == (
        f"run: './train.sh' given, but there is no program '{script}'; correct the path or the workdir"
    )
    script.write_text("#!/bin/sh\n")
    if os.access(script, os.X_OK):
        pytest.skip("files are executable here, whatever their mode")
    assert refused(program(("./train.sh",), workdir=str(tmp_path))).startswith(f"run: '{script}' is not executable")
    script.chmod(0o755)
    refuse_what_cannot_run(program("./train.sh", workdir=str(tmp_path)))
    assert "there is no program" in refused(program("./train.sh")), "without a workdir, from the root"
    assert "there is no program" in refused(program(str(tmp_path))), "a directory is none"


def test_what_setup_installs_run_may_need(tmp_path: Path) -> None:
    refuse_what_cannot_run(program("no-such-program", setup="ls"))
    assert refused(program("ls", setup="no-such-program")).startswith("setup: the command 'no-such-program'")


def test_the_longest_word_that_linux_takes_is_taken_and_no_longer_one() -> None:
    refuse_what_cannot_run(program(("ls", "x" * LONGEST)))
    assert refused(program(("ls", "x" * (LONGEST + 1)))).startswith(
        f"run: {LONGEST + 1} bytes given, at most {LONGEST} can be passed on"
    )
    refuse_what_cannot_run(program("ls " + "x" * (LONGEST - 3)))
    assert refused(program("ls", setup="ls " + "é" * LONGEST)).startswith(f"setup: {2 * LONGEST + 3} bytes given")
    refuse_what_cannot_run(program("ls", envs={"A": "x" * (LONGEST - 2)}))
    assert refused(program("ls", envs={"A": "x" * (LONGEST - 1)})).startswith(f"envs.A: {LONGEST + 1} bytes given")


def test_directories_have_to_be_there_and_be_given_whole(tmp_path: Path) -> None:
    refuse_what_cannot_run(program("ls", workdir=str(tmp_path)))
    assert "workdir: 'work' given, expected the whole path" in refused(program("ls", workdir="work"))
    assert f"workdir: '{tmp_path / 'no'}' is not a directory" in refused(program("ls", workdir=str(tmp_path / "no")))
    refuse_what_cannot_run(program("ls", checkpoint_directory=str(tmp_path / "new" / "deep")))
    assert list(tmp_path.iterdir()) == [], "nothing is left of the attempt to write"
    assert "checkpoint.directory: 'c' given, expected the whole path" in refused(
        program("ls", checkpoint_directory="c")
    )
    (tmp_path / "file").touch()
    where = str(tmp_path / "file" / "c")
    assert f"checkpoint.directory: '{where}' cannot be written" in refused(program("ls", checkpoint_directory=where))


def test_requirements_need_uv_and_a_file_and_may_bring_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = program("no-such-program", workdir=str(tmp_path), requirements="needs.txt")
    monkeypatch.setattr(programs, "uv_program", lambda: None)
    assert refused(given).startswith("environment.uv: given, but the program 'uv' is not on this machine")
    monkeypatch.setattr(programs, "uv_program", lambda: "/bin/uv")
    assert f"environment.uv: '{tmp_path / 'needs.txt'}' is not a file of this machine" in refused(given)
    (tmp_path / "needs.txt").touch()
    refuse_what_cannot_run(given)


def test_for_another_user_nothing_is_looked_at(tmp_path: Path) -> None:
    """The rights of this one would tell what there is."""
    fields = {"workdir": str(tmp_path / "no"), "checkpoint_directory": "c", "user": "somebody"}
    refuse_what_cannot_run(program("no-such-program", **fields))
    assert "can be passed on" in refused(program("x" * (LONGEST + 1), **fields))
