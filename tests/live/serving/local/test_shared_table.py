"""The table of rows that all workers of an application have mapped."""

from __future__ import annotations

from pathlib import Path

import pytest
from numba import typeof

from fairway import Fleet, Model, StateTable, Worker
from fairway.live.serving.local.shared_table import SharedTable

FLEET = Fleet.of([Worker(f"w{number}", 10.0) for number in range(3)], [Model("a", 4), Model("b", 4)])


@pytest.fixture
def tables(tmp_path: Path) -> list[SharedTable]:
    """The supervisor's, and those of three workers, which are not there yet."""
    return [SharedTable.create(FLEET, tmp_path / "table"), *(SharedTable(FLEET, tmp_path / "table") for _ in range(3))]


def test_all_see_at_once_who_comes_and_who_is_said_to_be_gone(tables: list[SharedTable]) -> None:
    supervisor, *workers = tables
    assert not any(table.is_seen(number) for table in tables for number in range(3))
    workers[1].join(1)
    assert all(table.is_seen(1) and not table.is_seen(0) for table in tables)
    supervisor.mark_absent(1)
    assert not any(table.is_seen(1) for table in tables)


def test_all_see_what_a_worker_writes_in_its_row(tables: list[SharedTable]) -> None:
    workers = tables[1:]
    for number, table in enumerate(workers):
        table.join(number)
    workers[0].write_load(0, 1.5, 3.0, 2.0)
    workers[0].write_cache(0, 1, True, 2.0)
    seen = workers[2].view(2, 2.0)
    assert seen.load(0, 2.0) == 2.5
    assert (seen.holds(0, 1), seen.holds(0, 0), seen.free_bytes(0)) == (True, False, 6.0)


def test_who_gives_no_sign_is_called_busy_until_its_own_next_word(tables: list[SharedTable]) -> None:
    supervisor, first, second, _ = tables
    first.join(0)
    second.join(1)
    supervisor.call_busy(0, 8.0)
    assert second.view(1, 5.0).load(0, 5.0) == 3.0
    first.write_load(0, 0.0, 5.5, 5.0)
    assert second.view(1, 5.0).load(0, 5.0) == 0.5
    supervisor.call_busy(2, 8.0)
    assert not second.is_seen(2)


def test_compiled_code_takes_its_arrays_for_those_of_any_table(tables: list[SharedTable]) -> None:
    shared, own = (table.view(0, 0.0) for table in (tables[1], StateTable(FLEET)))
    assert [typeof(value) for value in shared] == [typeof(value) for value in own]
