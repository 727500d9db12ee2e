"""Virtual environments of jobs: built once for the same requirements, and a failure of the job if they cannot be."""

from __future__ import annotations

import asyncio
import zipfile
from pathlib import Path

import pytest

from fairway.errors import InputError
from fairway.live.backend.commands import JobProgram
from fairway.live.local import programs
from fairway.live.local.environment_build import uv_program
from fairway.live.local.log_files import log_path
from fairway.live.local.programs import refuse_what_cannot_run
from tests.live.training.machine import Machine

needs_uv = pytest.mark.skipif(uv_program() is None, reason="needs the program uv")


def wheel(directory: Path) -> Path:
    """A package that says where it is from, as a file that needs no network."""
    path = directory / "greeting-1.0-py3-none-any.whl"
    info = "greeting-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("greeting.py", "WORD = 'from-the-environment'\n")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"greeting.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return path


@needs_uv
def test_jobs_with_the_same_requirements_share_an_environment(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(f"greeting @ file://{wheel(tmp_path)}\n")
    say = 'python -c "import greeting, sys; print(greeting.WORD, sys.prefix)"'

    async def check() -> None:
        async with Machine(tmp_path, "v100=2") as machine:
            given = {"run": say, "workdir": str(tmp_path), "requirements": "requirements.txt"}
            await machine.start("one", 1, **given)
            await machine.start("two", 2, workers=[1], **given)  # at the same time
            for name, lease in (("one", 1), ("two", 2)):
                assert (await machine.ended(name, lease)).kind == "finished"
            said = [log_path(machine.directory, name, 0).read_text().splitlines()[-1] for name in ("one", "two")]
            assert said[0] == said[1]
            word, where = said[0].split()
            assert word == "from-the-environment"
            assert Path(where).parent == machine.directory / "environments" / "own"

    asyncio.run(check())


@needs_uv
def test_what_cannot_be_installed_is_a_failure_of_the_job_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("--no-index\nno-such-package-at-all\n")

    async def check() -> None:
        async with Machine(tmp_path) as machine:
            await machine.start(run="true", workdir=str(tmp_path), requirements="requirements.txt")
            ended = await machine.ended()
            assert ended.kind == "failed-to-start"
            assert "environment: requirements.txt cannot be installed" in ended.reason
            assert "no-such-package-at-all" in ended.reason
            assert not [one for one in (machine.directory / "environments" / "own").iterdir() if one.is_dir()]

    asyncio.run(check())


def test_requirements_that_are_not_there_are_refused_at_the_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = JobProgram(run="python x.py", workdir=str(tmp_path), requirements="requirements.txt")
    monkeypatch.setattr(programs, "uv_program", lambda: "/usr/bin/uv")
    with pytest.raises(InputError, match=r"environment\.uv: '.*/requirements.txt' is not a file of this machine"):
        refuse_what_cannot_run(program)
    (tmp_path / "requirements.txt").touch()
    refuse_what_cannot_run(program)
    monkeypatch.setattr(programs, "uv_program", lambda: None)
    with pytest.raises(InputError, match=r"environment\.uv: given, but the program 'uv' is not on this machine"):
        refuse_what_cannot_run(program)
