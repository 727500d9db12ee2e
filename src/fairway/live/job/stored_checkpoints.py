"""Brings the checkpoints of a job from a URL before it starts, and sends them there as it runs, and when it has ended.

    python -m fairway.live.job.stored_checkpoints bring|send|follow URL DIRECTORY

The job sees a local directory. What is at the URL, through fsspec, is always one whole state of that directory:

    objects/…        the content of files, each written once under a name of its own
    manifest-NUMBER  which run has sent it, which files the directory had, and which object each of them is

A state is sent only if nothing in the directory has changed while it was read. Its manifest is written after all of its
objects, and says by a checksum that it is whole; only then is what came before removed. So whenever a run is killed,
the next one finds the last state that was sent, and a store need not be able to replace a file at once.
Where the directory of this machine is newer than what was sent, because its run had no time to send it and no other
has sent anything since, it stays. A run never writes over what another has sent since it began. A job that has its
credentials in its own environment needs no other: all of this runs as the job does.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fairway.errors import FairwayError
from fairway.live.durable_file import read_json, write_json

_STATE = ".fairway-stored.json"
_OURS = (".fairway-", "..fairway-")
"""How names in the directory begin that are not the job's: this file, and what is brought or written half."""

_LOOK_SECONDS, _REST_SECONDS = 1.0, 0.3
"""How often to look whether something has changed, and how long nothing more may, until it counts as a whole state."""

_AGAIN_SECONDS = 5.0


class StoreProblemError(FairwayError):
    """Checkpoints cannot be read from their URL, or written there; says why."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file as it stands: its size, when it was changed, and which file it is; or where a link points."""

    size: int
    changed: int
    inode: int
    target: str | None = None


class StoredCheckpoints:
    """The checkpoints of one job at a URL, and its local directory."""

    def __init__(self, url: str, directory: Path) -> None:
        try:
            import fsspec  # noqa: PLC0415 - an extra, which only such jobs need
        except ModuleNotFoundError:
            raise StoreProblemError(
                f"{url}: this needs fsspec, which is not installed on this machine; install Fairway with its extra "
                "'fsspec' there"
            ) from None
        self._url, self._directory = url, directory
        try:
            self._files, self._root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except Exception as error:
            raise StoreProblemError(f"{url}: {_in_words(error)}") from None
        self._seen: dict[str, _Entry] | None = None
        self.is_changing = False
        state = read_json(directory / _STATE) or {}
        if state.get("url") != url:
            state = {}
        self._run: str | None = state.get("run")
        self._base: list[Any] | None = state.get("base")
        self._objects = {name: (str(one[0]), _Entry(*one[1:])) for name, one in state.get("files", {}).items()}
        self._sent = {name: entry for name, (_, entry) in self._objects.items()}

    # Bringing

    def bring(self) -> str:
        """Have the last state in the local directory; a sentence says what was done."""
        self._directory.mkdir(parents=True, exist_ok=True)
        newest = self._newest()
        if newest is None:
            said = "there are none yet"
        elif self._run is not None and not self._is_of_another(newest):
            said = "those of this machine are the newest"
        else:
            self._fetch(newest["files"])
            said = f"{len(newest['files'])} files were brought"
        self._run, self._base = uuid.uuid4().hex, None if newest is None else _identity(newest)
        self._remember()
        return f"checkpoints at {self._url}: {said}"

    def _is_of_another(self, manifest: Mapping[str, Any]) -> bool:
        """Whether another run has sent this since the one that has the local directory began."""
        return manifest["run"] != self._run and _identity(manifest) != self._base

    def _fetch(self, files: Mapping[str, Any]) -> None:
        """Have exactly these files, in place of what is there; it stays if one of them cannot be read."""
        beside = self._directory / f".fairway-{uuid.uuid4().hex}"
        beside.mkdir()
        try:
            objects = {}
            for name, (stored, size) in files.items():
                path = beside / _inside(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                if stored.startswith("->"):
                    path.symlink_to(stored.removeprefix("->"))
                    continue
                self._files.get_file(self._path("objects", stored), str(path))
                if path.stat().st_size != size:
                    raise StoreProblemError(f"{self._url}: {name} has {path.stat().st_size} bytes, expected {size}")
                objects[name] = (stored, _entry(path))
        except StoreProblemError:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        except Exception as error:
            shutil.rmtree(beside, ignore_errors=True)
            raise StoreProblemError(f"{self._url}: cannot be read: {_in_words(error)}") from None
        for path in self._directory.iterdir():
            if path != beside:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for path in beside.iterdir():
            path.rename(self._directory / path.name)
        beside.rmdir()
        self._objects = objects
        self._sent = {name: entry for name, (_, entry) in objects.items()}

    # Sending

    def send(self, *, at_rest: bool = False) -> bool:
        """Send the directory if it differs from what is there; False if it does not, or if it may be half written.

        What is `at_rest` has no process any more that could write it.
        """
        now = self._listing()
        self.is_changing = now not in (self._seen, self._sent)
        if self.is_changing and not at_rest:
            self._seen = now
            return False
        if now == self._sent:
            return False
        newest = self._newest()
        if newest is not None and self._is_of_another(newest):
            raise StoreProblemError(f"{self._url}: another run has saved there since this one began")
        try:
            self._upload(now)
            if self._listing() != now:  # the next look shows whether it is at rest
                return False
            number = 1 + (0 if newest is None else newest["number"])
            self._write_manifest(number, now)
            self._remove_what_was_before(number)
        except OSError as error:
            raise StoreProblemError(f"{self._url}: cannot be written: {_in_words(error)}") from None
        except StoreProblemError:
            raise
        except Exception as error:
            raise StoreProblemError(f"{self._url}: cannot be written: {_in_words(error)}") from None
        self._sent = now
        self._remember()
        return True

    def _upload(self, listing: Mapping[str, _Entry]) -> None:
        objects = {}
        self._files.makedirs(self._path("objects"), exist_ok=True)
        for name, entry in listing.items():
            known = self._objects.get(name)
            if known is not None and known[1] == entry:
                objects[name] = known
            elif entry.target is not None:
                objects[name] = (f"->{entry.target}", entry)
            else:
                stored = uuid.uuid4().hex
                with suppress(FileNotFoundError):  # it was removed since: another look shows that
                    self._files.put_file(str(self._directory / name), self._path("objects", stored))
                objects[name] = (stored, entry)
        self._objects = objects

    def _write_manifest(self, number: int, listing: Mapping[str, _Entry]) -> None:
        files = {name: [stored, listing[name].size] for name, (stored, _) in self._objects.items()}
        content = {"run": self._run, "number": number, "files": files}
        whole = json.dumps({**content, "checksum": _checksum(content)}).encode()
        self._files.pipe_file(self._path(_manifest(number)), whole)

    def _remove_what_was_before(self, number: int) -> None:
        for name in self._names():
            if name.startswith("manifest-") and name < _manifest(number):
                self._files.rm_file(self._path(name))
        needed = {stored for stored, _ in self._objects.values()}
        for name in self._names("objects"):
            if name not in needed:
                self._files.rm_file(self._path("objects", name))

    # What is there

    def _newest(self) -> dict[str, Any] | None:
        """The newest manifest that is whole."""
        try:
            for name in sorted((name for name in self._names() if name.startswith("manifest-")), reverse=True):
                with suppress(ValueError, KeyError, TypeError):
                    content: dict[str, Any] = json.loads(self._files.cat_file(self._path(name)))
                    if content.pop("checksum") == _checksum(content):
                        return content
        except Exception as error:
            raise StoreProblemError(f"{self._url}: cannot be read: {_in_words(error)}") from None
        return None

    def _names(self, *below: str) -> list[str]:
        self._files.invalidate_cache()
        try:
            found = self._files.ls(self._path(*below), detail=False)
        except FileNotFoundError:
            return []
        return [PurePosixPath(str(path)).name for path in found]

    def _path(self, *parts: str) -> str:
        return "/".join([self._root.rstrip("/"), *parts])

    def _listing(self) -> dict[str, _Entry]:
        """All files of the directory, but for our own."""
        found = {}
        for directory, below, names in os.walk(self._directory):
            below[:] = [name for name in below if not name.startswith(_OURS)]
            links = [name for name in below if (Path(directory) / name).is_symlink()]
            for name in (*names, *links):
                path = Path(directory) / name
                if not name.startswith(_OURS):
                    with suppress(FileNotFoundError):
                        found[str(path.relative_to(self._directory))] = _entry(path)
        return dict(sorted(found.items()))

    def _remember(self) -> None:
        """Note which run has the directory, from what it began, and which object each file is."""
        files = {name: [stored, *astuple(entry)] for name, (stored, entry) in self._objects.items()}
        state = {"url": self._url, "run": self._run, "base": self._base, "files": files}
        write_json(self._directory / _STATE, state, durable=False)


def _manifest(number: int) -> str:
    return f"manifest-{number:012d}"


def _identity(manifest: Mapping[str, Any]) -> list[Any]:
    return [manifest["run"], manifest["number"]]


def _entry(path: Path) -> _Entry:
    if path.is_symlink():
        return _Entry(0, 0, 0, str(path.readlink()))
    found = path.stat()
    return _Entry(found.st_size, found.st_mtime_ns, found.st_ino)


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise StoreProblemError(f"a file named '{name}' is outside of the directory of checkpoints")
    return path


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _in_words(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _follow(stored: StoredCheckpoints) -> None:
    """Send what is new until told to end by SIGTERM, and the last state then."""
    over: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: over.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    said = ""
    while True:
        last = bool(over)
        try:
            stored.send(at_rest=last)
            wait = _REST_SECONDS if stored.is_changing else _LOOK_SECONDS
            if last:
                return
        except StoreProblemError as error:
            wait = _AGAIN_SECONDS
            if str(error) != said:
                said = str(error)
                print(f"fairway: checkpoints are not sent: {error}; it is tried again", flush=True)
        until = time.monotonic() + wait
        while time.monotonic() < until and (last or not over):
            time.sleep(0.05)


def main(what: str, url: str, directory: str) -> int:
    """Do one of the three; 1 with a line on standard output if that fails."""
    try:
        stored = StoredCheckpoints(url, Path(directory))
        match what:
            case "bring":
                print(f"fairway: {stored.bring()}", flush=True)
            case "send":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends as soon as it can
                stored.send(at_rest=True)
            case _:
                _follow(stored)
    except (FairwayError, OSError) as error:
        print(error, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
