"""The columns of the jobs present, against a list of rows; and the words in which reasons say sizes and names."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.engine.training.job_table import NONE, JobTable
from fairway.engine.training.reasons import gang, joined, listed, so_many
from fairway.engine.training.smallest_change import Apply, Trials


def add(table: JobTable, job: str, weight: float = 1.0, **fields: object) -> None:
    rates = np.array([weight, 2 * weight])
    table.add(
        job, time=5.0, rates=rates, spread=rates / 2, scale=2, weight=weight, steps=100.0, deadline=9.0, team=3, kind=4,
        **fields,  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_job_that_is_added_waits_and_has_done_nothing() -> None:
    table = JobTable(2)
    add(table, "a", 1.5)
    row = {name: getattr(table, name)[0] for name in (
        "number", "scale", "on", "beside", "charged", "lease", "team", "kind", "group", "fixed", "bound", "priority",
        "preempts", "nodes", "part", "weight", "left", "done", "since", "rate", "arrival", "deadline", "isolated",
        "pooled", "cpus", "memory", "changed", "due",
    )}  # fmt: skip
    assert row == {
        "number": 0, "scale": 2, "on": NONE, "beside": NONE, "charged": NONE, "lease": NONE, "team": 3, "kind": 4,
        "group": NONE, "fixed": 0, "bound": 0, "priority": 0, "preempts": 1, "nodes": 0, "part": 1000, "weight": 1.5,
        "left": 100.0, "done": 0.0, "since": 5.0, "rate": 0.0, "arrival": 5.0, "deadline": 9.0, "isolated": 0.0,
        "pooled": 0.0, "cpus": 0.0, "memory": 0.0, "changed": 5.0, "due": 0.0,
    }  # fmt: skip
    assert table.rates.tolist() == [[1.5, 3.0]]
    assert table.spread.tolist() == [[0.75, 1.5]]
    assert (table.shares.tolist(), table.owed.tolist(), table.known.tolist()) == ([[0, 0]], [[0, 0]], [[1, 1]])
    assert (table.held.tolist(), table.sizes.tolist()) == ([2000], [2.0])


def test_what_a_job_asks_for_stands_in_its_row() -> None:
    table = JobTable(2)
    add(table, "a", group=1, fixed=True, bound=True, known=np.array([1.0, 0.0]), cpus=2.0, memory=3.0, priority=4,
        preempts=False, nodes=5, part=500)  # fmt: skip
    assert [int(getattr(table, name)[0]) for name in ("group", "fixed", "bound", "priority", "preempts", "nodes")] == [
        1, 1, 1, 4, 0, 5,
    ]  # fmt: skip
    assert (table.cpus[0], table.memory[0], table.known.tolist()) == (2.0, 3.0, [[1.0, 0.0]])
    assert (table.held.tolist(), table.sizes.tolist()) == ([1000], [1.0])


def test_a_column_is_set_at_once() -> None:
    table = JobTable(2)
    add(table, "a")
    add(table, "b")
    table.done = [1.0, 2.0]
    table.owed = 7.0
    assert table.done.tolist() == [1.0, 2.0]
    assert table.owed.tolist() == [[7.0, 7.0]] * 2


@given(st.lists(st.booleans(), max_size=150), st.randoms(use_true_random=False))
def test_jobs_come_and_go_as_in_a_list(comes: list[bool], random: object) -> None:
    table, rows, count = JobTable(2), list[tuple[str, float]](), 0
    for one in [True] * 60 + comes:
        if one or not rows:
            add(table, f"j{count}", float(count))
            rows.append((f"j{count}", float(count)))
            count += 1
        else:
            at = random.randrange(len(rows))  # type: ignore[attr-defined]
            table.remove(at)
            del rows[at]
    assert table.ids == [name for name, _ in rows]
    assert table.weight.tolist() == table.number.tolist() == [weight for _, weight in rows]
    assert table.rates[:, 1].tolist() == [2 * weight for _, weight in rows]
    assert len(table) == len(rows)
    assert [table.position(name) for name, _ in rows] == list(range(len(rows)))
    assert table.positions(table.number).tolist() == list(range(len(rows)))
    assert all(name in table for name, _ in rows)
    assert f"j{count}" not in table


def test_a_copy_lives_by_itself() -> None:
    table = JobTable(2)
    add(table, "a", 1.0)
    copy = deepcopy(table)
    add(copy, "b", 2.0)
    copy.weight = [5.0, 6.0]
    assert (table.ids, table.weight.tolist()) == (["a"], [1.0])
    assert copy.number.tolist() == [0, 1]
    add(table, "c", 3.0)
    assert table.number.tolist() == [0, 1]
    assert (copy.position("b"), "c" in copy) == (1, False)


def test_partners_stand_where_their_numbers_lead() -> None:
    table = JobTable(2)
    for name in "abcd":
        add(table, name)
    assert table.partners().tolist() == [NONE] * 4
    table.remove(0)
    assert table.partners().tolist() == [NONE] * 3
    table.beside = [NONE, 3, 2]  # numbers, of which 1, 2 and 3 are left
    assert table.partners().tolist() == [NONE, 2, 1]
    first = JobTable(2)
    for name in "ab":
        add(first, name)
    first.beside = [1, 0]
    assert first.partners().tolist() == [1, 0]


# Words


@pytest.mark.parametrize(
    ("words", "said"), [([], ""), (["a"], "a"), (["a", "b"], "a or b"), (["a", "b", "c"], "a, b or c")]
)
def test_the_link_stands_before_the_last_word(words: list[str], said: str) -> None:
    assert joined(words, "or") == said


def test_three_names_are_listed_and_the_others_counted() -> None:
    assert listed(["a", "b", "c"]) == "'a', 'b' and 'c'"
    assert listed(["a", "b", "c", "d"]) == "'a', 'b', 'c' and 1 more"
    assert listed(["a", "b", "c", "d", "e"]) == "'a', 'b', 'c' and 2 more"


def test_sizes_are_said_in_workers_and_parts() -> None:
    assert [so_many(scale) for scale in (1, 2)] == ["1", "2"]
    assert [so_many(scale, 500) for scale in (1, 2)] == ["0.5", "2 × 0.5"]
    assert gang(1, ["a"]) == "1 a"
    assert gang(1, ["a", "b"]) == "1 a or b"
    assert gang(2, ["a"]) == "2 a"
    assert gang(2, ["a", "b"]) == "2 workers of one type (a or b)"
    assert gang(2, ["a", "b"], 250) == "2 × 0.25 workers of one type (a or b)"


# The least change that helps


@dataclass
class Counted(Trials):
    """Trials of a number: so many start the job as the round begins, so many at once."""

    later: int
    at_once: int
    tried: int = 0

    def starts(self, apply: Apply) -> bool | None:
        self.tried += 1
        counts: list[int] = []
        apply(counts)  # type: ignore[arg-type]
        (count,) = counts
        return True if count >= self.at_once else False if count >= self.later else None


@given(st.integers(0, 70), st.integers(1, 80), st.integers(0, 10))
def test_the_least_number_is_found_by_halving(most: int, later: int, more: int) -> None:
    trials = Counted(later, later + more)
    found = trials.least(most, lambda counts, count: counts.append(count))  # type: ignore[attr-defined]
    assert found == (None if later > most else (later, more == 0))
    assert trials.tried <= 1 + max(most, 1).bit_length()
