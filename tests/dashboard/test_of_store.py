"""The saved run of a store: what was written down, for whom, and what changed since a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairway.cli.main import app
from fairway.dashboard.of_store import saved_store
from fairway.dashboard.run_file import check, document, read_run
from fairway.store import Store, open_store
from fairway.store.leases import end_lease
from tests.store.conftest import postgresql, postgresql_url, store, url
from tests.store.making import running, submitted, with_workers

__all__ = ["postgresql", "postgresql_url", "store", "url"]


def two_jobs(store: Store) -> tuple[str, str, int]:
    """Two jobs of different teams; the first ran from 2 to 7 and holds a worker again, the second waits."""
    with_workers(store, 2)
    (one,) = submitted(store, team="red", at=1.0)
    (other,) = submitted(store, team="blue", at=1.5)
    lease = running(store, one, (0, 1), at=2.0)
    return one, other, lease


def saved(store: Store, **options: Any) -> dict[str, Any]:
    run = store.read(saved_store, now=10.0, **options)
    check(document([run]))
    return run


def test_jobs_and_leases_are_those_of_the_store(store: Store) -> None:
    one, other, lease = two_jobs(store)
    run = saved(store)
    assert run["jobs"]["id"] == [one, other]
    assert run["jobs"]["submitted"] == [0.0, 0.5]
    assert run["begins_at"] == 1.0
    assert run["end"] == 9.0
    assert run["leases"]["number"] == [lease]
    assert run["leases"]["workers"] == [[0, 1]]
    assert (run["leases"]["start"], run["leases"]["end"]) == ([1.0], [None])
    assert run["types"] == ["v100"]
    assert run["teams"]["name"] == ["blue", "red"]


def test_a_member_sees_that_workers_are_held_but_not_by_whom(store: Store) -> None:
    one, other, _ = two_jobs(store)
    run = saved(store, team="blue")
    assert run["jobs"]["id"] == [other]
    assert one not in str(run)
    assert run["leases"]["job"] == [-1]


def test_what_changed_since_holds_each_lease_that_ended(store: Store) -> None:
    one, _, lease = two_jobs(store)
    store.write(end_lease, lease, at=7.0)
    assert saved(store, since=8.0)["leases"]["number"] == []
    news = saved(store, since=6.0)
    assert news["leases"]["number"] == [lease]
    assert news["leases"]["end"] == [7.0]
    assert news["begins_at"] == 0.0
    assert news["jobs"]["id"] == [one], "the job of a lease comes with it"


def test_an_open_lease_is_news_as_long_as_it_is_open(store: Store) -> None:
    _, _, lease = two_jobs(store)
    assert saved(store, since=9.0)["leases"]["number"] == [lease]


def test_an_empty_store_is_an_empty_run(store: Store) -> None:
    run = saved(store)
    assert run["jobs"]["id"] == []
    assert run["workers"]["number"] == []


def test_the_command_exports_a_store_that_no_controller_runs_on(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "home")) as opened:
        one, other, _ = two_jobs(opened)
    target = tmp_path / "run.fairway"
    trace = tmp_path / "run.perfetto-trace"
    answer = CliRunner().invoke(
        app, ["history", "export", str(target), "--store", str(tmp_path / "home"), "--perfetto", str(trace)]
    )
    assert answer.exit_code == 0, answer.output
    assert "saved 2 jobs and 1 lease" in answer.output
    assert read_run(target)["runs"][0]["jobs"]["id"] == [one, other]
    assert trace.stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["history", "export", "run.fairway", "--store", "nowhere"], "there is no store"),
        (["open", "nothing.fairway"], "nothing.fairway: cannot be read: No such file"),
        (["open", "README.fairway"], "README.fairway: not a saved run"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("README.fairway").write_text("# Fairway")
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 2
    assert said in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_open_writes_a_page(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "home")) as opened:
        two_jobs(opened)
    runner = CliRunner()
    runner.invoke(app, ["history", "export", str(tmp_path / "run.fairway"), "--store", str(tmp_path / "home")])
    answer = runner.invoke(app, ["open", str(tmp_path / "run.fairway"), "--html", str(tmp_path / "run.html")])
    assert answer.exit_code == 0
    assert 'id="run"' in (tmp_path / "run.html").read_text()
