"""Saved runs: what goes in comes out, and what is none is refused in one line that says why."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairway.dashboard.of_serving import saved_serving
from fairway.dashboard.of_training import saved_training
from fairway.dashboard.run_file import VERSION, document, packed, read_run, save, unpacked
from fairway.dashboard.tables import TABLES
from fairway.errors import InputError
from tests.dashboard.runs import served_requests
from tests.report.records import four_jobs


def run() -> dict[str, Any]:
    return document([saved_training(four_jobs())], command="fairway simulate training")


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    content = json.loads(json.dumps(run()))
    change(content)
    return gzip.compress(json.dumps(content).encode())


def test_a_run_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    save(run(), tmp_path / "run.fairway")
    assert read_run(tmp_path / "run.fairway") == run()


def test_the_same_run_gives_the_same_bytes() -> None:
    assert packed(run()) == packed(run())


def test_jobs_and_leases_of_the_record_are_in_it() -> None:
    (saved,) = run()["runs"]
    assert saved["jobs"]["id"] == ["a", "b", "c", "d"]
    assert saved["jobs"]["state"] == ["succeeded", "succeeded", "queued", "failed"]
    assert saved["jobs"]["ended"] == [100.0, 350.0, None, None]
    assert saved["leases"]["workers"][0] == [0]
    assert (saved["leases"]["start"][0], saved["leases"]["end"][0]) == (0.0, 100.0)
    assert set(TABLES["training"]) <= set(saved)


@pytest.mark.parametrize("part", [10, 100, 0.5, -1])
def test_a_file_that_is_cut_off_says_so(part: float) -> None:
    whole = packed(run())
    cut = whole[: int(part) if abs(part) >= 1 else int(len(whole) * part)]
    with pytest.raises(InputError, match=r"^r\.fairway: cut off after \d+ bytes"):
        unpacked(cut, "r.fairway")


def test_a_file_that_is_damaged_says_so() -> None:
    whole = bytearray(packed(run()))
    whole[40] ^= 0xFF
    with pytest.raises(InputError, match=r"damaged|cut off|no JSON"):
        unpacked(bytes(whole))


def test_a_newer_version_asks_for_a_newer_fairway() -> None:
    with pytest.raises(InputError, match=f"of version {VERSION + 1}, but this Fairway reads up to {VERSION}"):
        unpacked(changed(lambda content: content.update(version=VERSION + 1)))


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"\x1f",
        b"PK\x03\x04",
        b'{"format": "fairway-run"}',
        gzip.compress(b"[]", mtime=0),
        gzip.compress(b'{"a":1}', mtime=0),
    ],
)
def test_what_is_no_run_is_refused(given: bytes) -> None:
    with pytest.raises(InputError, match="not a saved run"):
        unpacked(given)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content.update(version="1"), r"version: \"1\" given"),
        (lambda content: content.update(version=True), "version: true given"),
        (lambda content: content.update(runs=[]), "no runs in it"),
        (lambda content: content["runs"][0].update(kind="other"), r"runs\.0\.kind: \"other\" given"),
        (lambda content: content["runs"][0].pop("end"), r"runs\.0\.end"),
        (lambda content: content["runs"][0].pop("leases"), r"runs\.0\.leases: expected a table"),
        (lambda content: content["runs"][0]["jobs"]["id"].pop(), r"runs\.0\.jobs: columns of 3, 4 rows"),
        (lambda content: content["runs"][0]["leases"]["job"].__setitem__(0, 4), r"leases\.job\.0: 4 given"),
        (lambda content: content["runs"][0]["leases"]["job"].__setitem__(0, -2), r"leases\.job\.0: -2 given"),
        (lambda content: content["runs"][0]["leases"]["workers"].__setitem__(1, ["a"]), r"leases\.workers\.1"),
        (lambda content: content["runs"][0]["jobs"]["submitted"].__setitem__(2, None), r"submitted\.2: null given"),
    ],
)
def test_each_thing_that_is_wrong_is_named(change: Callable[[dict[str, Any]], object], said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        unpacked(changed(change))
    assert "\n" not in str(refused.value)


def test_what_a_later_minor_change_adds_is_left_alone() -> None:
    content = unpacked(changed(lambda content: content["runs"][0].update(extra={"a": 1})))
    assert content["runs"][0]["extra"] == {"a": 1}


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_run(tmp_path / "none.fairway")


def test_a_file_of_the_first_version_is_read_with_what_it_does_not_have() -> None:
    old = json.loads(json.dumps(document([saved_training(four_jobs()), saved_serving(served_requests())])))
    old["version"] = 1
    training, serving = old["runs"]
    del training["jobs"]["counted"], serving["workers"]["awaited"], serving["staleness"]
    training, serving = unpacked(packed(old))["runs"]
    assert training["jobs"]["counted"] == [True] * 4
    assert serving["workers"]["awaited"] == [0] * len(serving["workers"]["name"])
    assert serving["staleness"] == {"time": [], "load_seconds": [], "models_wrong": []}
