"""Whether this machine can start a program: it has the directories and the command, and nothing is too long for it.

What a shell makes of a longer script is not guessed: only its first word is looked at, and only if that is a plain one.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from threading import get_ident

from fairway.errors import InputError
from fairway.live.backend.commands import JobProgram
from fairway.live.local.environment_build import uv_program
from fairway.live.local.images import refuse_container

_FIRST_WORD = re.compile(
    r"(?:\s|#[^\n]*\n)*"  # nothing, and comments
    r"(?:(?!PATH=)[A-Za-z_]\w*=[\w@%+:,./-]*[ \t]+)*"  # variables for the command, other than where to look for it
    r"(?P<word>[\w@%+:,./-]+)(?=\s|[;|&<>]|$)(?![ \t]*\()"  # a word that means itself, and no name of a function
)
_OF_THE_SHELL = frozenset(
    re.findall(
        r"\S+",
        """. : [ alias bg bind break builtin caller case cd command compgen complete continue coproc declare dirs disown
        echo enable eval exec exit export false fc fg for function getopts hash help history if jobs kill let local
        logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source suspend test
        time times trap true type typeset ulimit umask unalias unset until wait while""",
    )
)
_REMEMBERED_SECONDS = 2.0

_LONGEST_WORD = 32 * 4096 - 1
"""Bytes of a word of a command, or of a variable with its name, that Linux starts a program with (MAX_ARG_STRLEN)."""


def refuse_what_cannot_run(program: JobProgram) -> None:
    """Refuse directories and commands that are not there, and what is longer than the system takes.

    For a job of another user nothing is looked at with the rights of this one, which would tell what there is.
    """
    for where, command in (("setup", program.setup), ("run", program.run)):
        for word in () if command is None else (command,) if isinstance(command, str) else command:
            _refuse_too_long(where, word)
    for name, value in program.envs.items():
        _refuse_too_long(f"envs.{name}", f"{name}={value}")
    if program.requirements is not None and uv_program() is None:
        raise InputError(
            "environment.uv: given, but the program 'uv' is not on this machine; install it, as by 'pip install uv', "
            "or install what the job needs by 'setup'"
        )
    if program.image is not None:
        refuse_container(program)
    if program.user is not None:
        return
    if program.requirements is not None:
        _require_file("environment.uv", Path(program.workdir or "/") / program.requirements)
    if program.workdir is not None:
        _require_directory(Path(program.workdir))
    if program.checkpoints_at is not None:
        _require_store(program.checkpoints_at)
    elif program.checkpoint_directory is not None:
        _require_writable(Path(program.checkpoint_directory))
    for directory in program.mounts:
        _require_directory(Path(directory), "environment.mounts")
    if program.requirements is not None or program.image is not None:
        return  # it may bring the command
    if program.setup is not None:
        _require_command("setup", program.setup, program)  # what it installs, `run` may need
    else:
        _require_command("run", program.run, program)


def _refuse_too_long(where: str, text: str) -> None:
    size = len(text.encode(errors="surrogatepass"))
    if size > _LONGEST_WORD:
        raise InputError(f"{where}: {size} bytes given, at most {_LONGEST_WORD} can be passed on; put it into a file")


def _require_directory(path: Path, where: str = "workdir") -> None:
    if not path.is_absolute():
        raise InputError(f"{where}: '{path}' given, expected the whole path of a directory, as in '/home/me/vision'")
    try:
        found = path.is_dir()
    except (OSError, ValueError):
        found = False
    if not found:
        raise InputError(f"{where}: '{path}' is not a directory of this machine; make it, or give another")
    if not os.access(path, os.R_OK | os.X_OK):
        raise InputError(f"{where}: no permission to enter '{path}'; change that, or give another")


def _require_file(where: str, path: Path) -> None:
    try:
        readable = path.is_file() and os.access(path, os.R_OK)
    except (OSError, ValueError):
        readable = False
    if not readable:
        raise InputError(f"{where}: '{path}' is not a file of this machine that can be read; correct it or the workdir")


def _require_writable(path: Path) -> None:
    """Try to write where the directory is, or would be: permissions do not show a read-only file system."""
    where = "checkpoint.directory"
    if not path.is_absolute():
        raise InputError(f"{where}: '{path}' given, expected the whole path of a directory, as in '/data/checkpoints'")
    try:
        there = next(directory for directory in (path, *path.parents) if directory.exists())
        probe = there / f".fairway-{os.getpid()}-{get_ident()}"
        probe.touch()
        probe.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{where}: '{path}' cannot be written ({why}); give a directory that can") from None


def _require_store(url: str) -> None:
    """Refuse a URL that no library here knows; whether it can be reached shows only with what the job has."""
    try:
        import fsspec  # noqa: PLC0415 - an extra, which only such jobs need
    except ModuleNotFoundError:
        raise InputError(
            f"checkpoint.directory: '{url}' given, which needs fsspec; install Fairway with its extra 'fsspec' on "
            "every machine, or give a directory"
        ) from None
    kind = url.partition("://")[0]
    if kind == "memory":
        raise InputError(f"checkpoint.directory: '{url}' given, which is gone with each process; give another")
    try:
        fsspec.get_filesystem_class(kind)
    except (ImportError, ValueError) as error:
        raise InputError(f"checkpoint.directory: '{url}' given, but {error}") from None


def _require_command(where: str, command: str | tuple[str, ...], program: JobProgram) -> None:
    if isinstance(command, tuple):
        word = command[0]
    else:
        match = _FIRST_WORD.match(command)
        if match is None or match["word"] in _OF_THE_SHELL:
            return
        word = match["word"]
    if "/" in word:
        _require_program(where, word, Path(program.workdir or "/") / word)
    elif not _is_found(word, _search_path(program.envs), int(time.monotonic() / _REMEMBERED_SECONDS)):
        raise InputError(
            f"{where}: the command '{word}' does not exist on this machine; install it, or give the path of the program"
        )


def _require_program(where: str, word: str, path: Path) -> None:
    try:
        is_file = path.is_file()
    except (OSError, ValueError):
        is_file = False
    if not is_file:
        raise InputError(f"{where}: '{word}' given, but there is no program '{path}'; correct the path or the workdir")
    if not os.access(path, os.X_OK):
        raise InputError(f"{where}: '{path}' is not executable; run 'chmod +x' on it, or name its interpreter first")


def _search_path(envs: Mapping[str, str]) -> str:
    return envs.get("PATH", os.environ.get("PATH", os.defpath))


@lru_cache(maxsize=256)
def _is_found(word: str, path: str, _: int) -> bool:
    """Whether a program is found; asked again every few seconds, as it may be installed meanwhile."""
    try:
        return shutil.which(word, path=path) is not None
    except (OSError, ValueError):
        return False
