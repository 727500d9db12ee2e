"""Opening a store: what an address means, and what is said of one that cannot be used."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text, update

from fairway.errors import InputError
from fairway.store import Store, open_store
from fairway.store.database import schema
from fairway.store.errors import StoreError
from fairway.store.queries import list_jobs
from tests.store.making import submitted


@pytest.mark.parametrize(
    ("address", "file"),
    [
        ("{}", "fairway.db"),
        ("{}/new/deep", "new/deep/fairway.db"),
        ("{}/new/", "new/fairway.db"),
        ("{}/jobs.sqlite", "jobs.sqlite"),
        ("sqlite:///{}/jobs.db", "jobs.db"),
    ],
)
def test_a_path_is_a_file_or_a_directory(tmp_path: Path, address: str, file: str) -> None:
    with open_store(address.format(tmp_path)) as store:
        submitted(store)
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / file).parent.iterdir()}
    assert (tmp_path / file).is_file()
    assert len(modes) > 1
    assert set(modes.values()) == {0o600}, "of the database, its log and all that is beside it"
    with open_store(tmp_path / file) as store:
        assert len(store.read(list_jobs).jobs) == 1


def test_sqlite_syncs_fully_and_readers_cannot_write(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        settings = {
            name: store.write(lambda connection, name=name: connection.execute(text(f"PRAGMA {name}")).scalar())
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
        assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}
        with pytest.raises(StoreError, match="readonly"):
            store.read(lambda connection: connection.execute(text("DELETE FROM jobs")))


def test_what_was_written_is_there_after_reopening_and_opening_again_writes_nothing(url: str) -> None:
    with open_store(url) as store:
        ids = submitted(store, 3)
    with open_store(url) as first, open_store(url) as second:
        assert [job.id for job in first.read(list_jobs, newest_first=False).jobs] == ids
        assert [job.id for job in second.read(list_jobs, newest_first=False).jobs] == ids


def test_many_can_open_a_new_store_at_once(url: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: open_store(url), range(8)))
    submitted(stores[0])
    assert all(len(store.read(list_jobs).jobs) == 1 for store in stores)
    for store in stores:
        store.close()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("", "store: an empty address given, expected a directory"),
        ("mysql://me@here/db", "store: 'mysql' is no kind of store; expected"),
        ("sqlite://", "store: an SQLite URL must name a file"),
        ("sqlite:///:memory:", "store: an SQLite URL must name a file"),
        ("sqlite:here", "store: an SQLite URL must name a file"),
        ("postgresql://me:secret@here:port/db", "store: the address cannot be read; expected postgresql://"),
        ("/proc/fairway/store", "store /proc/fairway/store/fairway.db: cannot be written"),
        ("postgresql://me:secret@127.0.0.1:1/db", "refused.*; start the server or correct the address"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_in_one_line(address: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        open_store(address)
    assert "\n" not in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_directory_below_a_file_and_a_file_of_something_else_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("not a database, but long enough to look at " * 100)
    with pytest.raises(InputError, match=r"notes\.txt/store/fairway\.db: cannot be written"):
        open_store(other / "store")
    with pytest.raises(InputError, match="not a database; give another file"):
        open_store(other)


def test_a_database_that_does_not_exist_is_named_without_the_password(postgresql: str) -> None:
    address = postgresql.replace("fairway@", "fairway:secret@")
    with pytest.raises(InputError, match=r'fairway:\*\*\*@.*database "nowhere" does not exist') as raised:
        open_store(f"{address}/nowhere")
    assert "secret" not in str(raised.value)


def _foreign_sqlite(url: str) -> None:
    Path(url).mkdir()
    with sqlite3.connect(Path(url) / "fairway.db") as connection:
        connection.execute("CREATE TABLE films (title TEXT)")
    connection.close()


def _foreign_postgresql(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE films (title TEXT)")


def test_what_is_refused_is_not_held_open(tmp_path: Path) -> None:
    def held() -> set[str]:
        links = (each.readlink() for each in Path("/proc/self/fd").iterdir() if each.is_symlink())
        return {str(link) for link in links if str(link).startswith(str(tmp_path))}

    _foreign_sqlite(str(tmp_path / "store"))
    with pytest.raises(InputError, match="holds tables of another program"):
        open_store(tmp_path / "store")
    assert held() == set()
    (tmp_path / "torn.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)
    with pytest.raises(InputError, match=r"torn\.db"):
        open_store(tmp_path / "torn.db")
    assert held() == set()


def test_tables_of_another_program_are_left_alone(url: str) -> None:
    make: Callable[[str], None] = _foreign_postgresql if url.startswith("postgresql") else _foreign_sqlite
    make(url)
    with pytest.raises(InputError, match=r"holds tables of another program \(films\)"):
        open_store(url)


def test_a_store_of_a_newer_version_is_refused(url: str) -> None:
    with open_store(url) as store:
        store.write(lambda connection: connection.execute(update(schema.schema_version).values(version=99)) and None)
    with pytest.raises(InputError, match=r"by a newer Fairway \(schema 99, this one knows 5\); upgrade Fairway"):
        open_store(url)


def test_a_closed_store_says_so(store: Store) -> None:
    submitted(store)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        submitted(store)


def test_a_server_that_dropped_its_connections_is_asked_again(postgresql_url: str) -> None:
    drop = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename IS NOT NULL"
    )
    with open_store(postgresql_url) as store:
        submitted(store)
        with psycopg.connect(postgresql_url, autocommit=True) as connection:
            connection.execute(drop)
        submitted(store)
        assert len(store.read(list_jobs).jobs) == 2


def test_commits_wait_for_the_disk_also_where_the_server_would_not(postgresql_url: str) -> None:
    with open_store(postgresql_url.replace("options=", "options=-csynchronous_commit%3Doff%20")) as store:
        assert store.write(lambda connection: connection.execute(text("SHOW synchronous_commit")).scalar()) == "on"
