"""Compiled loops: called as written, whatever the arrays they are given, and never of another source."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fairway.allocate.kernels.master import begin, offer
from fairway.allocate.kernels.transport import cheapest_transport
from fairway.compiled import how, library
from fairway.place.fits import best_fit

HERE = Path(library.__file__).parent
needs_library = pytest.mark.skipif(
    library.opened() is None, reason="the loops are not compiled ahead here; 'make compiled' does it"
)


def run(code: str, **environment: str) -> str:
    """What a new process prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


ANSWERS = """
import numpy as np
from fairway.allocate.kernels.cheapest import Splits
from fairway.allocate.kernels.transport import cheapest_transport
from fairway.compiled import how
from fairway.configure.search.kernels import best_first_search, side_by_side, undominated
from fairway.place.fits import best_fit, first_fit
from fairway.place.kernels import spread_tasks
draw = np.random.default_rng(7)
hashed = []
def note(*values):
    for value in values:
        hashed.append(np.asarray(value).tobytes().hex())
for _ in range(20):
    splits = Splits(draw.random((30, 3)), draw.random(30))
    splits.price(draw.random(3))
    note(*splits.cheapest(draw.random(30) * 0.5, draw.random(30)), splits.usage, splits.slope)
    note(*cheapest_transport(draw.random((6, 3)), draw.integers(1, 4, 6), np.array([9, 9, 9])))
    cost = draw.random(12)
    note(undominated(cost, np.argsort(draw.random(12))))
    times = np.sort(draw.random(12))
    note(*side_by_side(times, cost, times.copy(), cost[::-1].copy()))
    layers = np.concatenate([times, times]), np.concatenate([cost, cost])
    note(*best_first_search(*layers, np.array([0, 12, 24]), 1.5, 3))
    free = draw.integers(0, 5, 9)
    among = draw.random(9) < 0.8
    note(best_fit(free, free.copy(), 2, 1, among), first_fit(free, free.copy(), 2, 1, among, 3, 2))
    note(spread_tasks(int(draw.integers(2**62)), np.zeros(0), draw.random((4, 5)), np.zeros(5)))
import hashlib
print(how(best_fit), hashlib.sha256("".join(hashed).encode()).hexdigest())
"""


@needs_library
def test_the_library_answers_to_the_last_bit_what_python_does() -> None:
    ahead, interpreted = run(ANSWERS, FAIRWAY_COMPILED="ahead").split(), run(ANSWERS, FAIRWAY_COMPILED="no").split()
    assert (ahead[0], interpreted[0]) == ("ahead", "no")
    assert ahead[1] == interpreted[1]


@needs_library
def test_nothing_is_compiled_and_no_compiler_is_loaded() -> None:
    code = (
        "import fairway.place.homes, fairway.allocate.policies, fairway.sim.serving, fairway.sim.training, sys; "
        "print('numba' in sys.modules)"
    )
    assert run(code, FAIRWAY_COMPILED="ahead") == "False"
    assert run(code, FAIRWAY_COMPILED="jit") == "True"


@needs_library
def test_arrays_of_other_contents_and_orders_are_brought_into_form() -> None:
    free = np.array([4, 2, 3, 2])
    among = np.ones(4, dtype=np.bool_)
    assert best_fit(free, free, 1, 1, among) == 1
    assert best_fit(free.astype(np.int32), free[::-1], np.int64(1), 1, among.tolist()) in {1, 2}
    assert best_fit(np.repeat(free, 2)[::2], free.copy(), 1, 1, among) == 1
    read_only = free.copy()
    read_only.flags.writeable = False
    assert best_fit(read_only, read_only, 1, 1, among) == 1


@needs_library
def test_numbers_are_not_cut_to_whole_ones() -> None:
    with pytest.raises(TypeError, match="best_fit: an array of float64 given, expected one of int64"):
        best_fit(np.array([0.5]), np.array([1]), 1, 1, np.array([True]))
    empty = np.zeros(0)
    assert best_fit(empty.astype(np.int64), empty.astype(np.int32), 1, 1, empty.astype(np.bool_)) == -1


@needs_library
def test_arguments_may_be_named_and_have_to_be_all_there() -> None:
    free, among = np.array([4, 2, 3]), np.ones(3, dtype=np.bool_)
    assert best_fit(free, free, 1, among=among, gpu=1) == best_fit(free, free, 1, 1, among) == 1
    with pytest.raises(TypeError, match="missing a required argument: 'among'"):
        best_fit(free, free, 1, 1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="too many positional arguments"):
        best_fit(free, free, 1, 1, among, 1)  # type: ignore[call-arg]
    with pytest.raises(OverflowError):
        best_fit(free, free, 2**70, 1, among)


@needs_library
def test_calls_leave_nothing_behind_and_take_nothing_that_is_still_used() -> None:
    """Whether a call answers, is refused at first, or raises: what it was given has as many holders as before."""
    free, among = np.array([4000, 2000, 3000]), np.ones(3, dtype=np.bool_)
    costs, short = np.full((2, 1), np.inf), free.astype(np.int32)
    counts, room, many = np.array([1, 1]), np.array([1]), 10**9
    given = (free, among, costs, short, counts, room, many)

    def call() -> None:
        best_fit(free, free, many, 1, among)
        best_fit(short, free, many, 1, among)
        with pytest.raises(AssertionError):
            cheapest_transport(costs, counts, room)
        cheapest_transport(np.ones((2, 1)), counts, np.array([2]))

    call()
    before = [sys.getrefcount(each) for each in (*given, None, np.dtype(np.int64))]
    for _ in range(50):
        call()
    after = [sys.getrefcount(each) for each in (*given, None, np.dtype(np.int64))]
    assert after[:-2] == before[:-2]
    assert all(abs(now - then) < 25 for now, then in zip(after[-2:], before[-2:], strict=True))


def test_what_a_loop_writes_reaches_an_array_of_another_order() -> None:
    from fairway.engine.training.progress import advance  # noqa: PLC0415

    table = np.zeros((3, 6))
    left, done, since, rate, pooled, isolated = table.T
    assert not left.flags.c_contiguous
    left[:], rate[:], pooled[:] = 10.0, 2.0, 4.0
    advance(2.0, left, done, since, rate, np.ones(3, dtype=np.int64), pooled, isolated, 1)
    assert left.tolist() == [6.0] * 3
    assert done.tolist() == [4.0] * 3
    assert since.tolist() == [2.0] * 3


def test_an_error_of_a_loop_is_raised_with_its_message() -> None:
    with pytest.raises(AssertionError, match="there must be room for everything"):
        cheapest_transport(np.full((2, 1), np.inf), np.array([1, 1]), np.array([1]))


def test_a_singular_basis_leaves_the_mixture_as_it_was() -> None:
    master = begin(np.array([0.5, 0.5]), 1.0, 3)
    for _ in range(3):
        offer(master, np.array([0.5, 0.5]), 1.0)
    assert master.best[-1] == pytest.approx(1.0)


@needs_library
def test_a_library_of_other_source_or_another_layout_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    manifest = json.loads(library.MANIFEST.read_text())
    some = next(iter(manifest["modules"].values()))
    some[next(iter(some))] = "another"
    changed = tmp_path / "kernels.json"
    changed.write_text(json.dumps(manifest))
    monkeypatch.setattr(library, "MANIFEST", changed)
    assert library.opened.__wrapped__() is None
    changed.write_text('{"functions": {')
    assert library.opened.__wrapped__() is None
    monkeypatch.undo()
    assert library.opened.__wrapped__() is not None
    monkeypatch.setattr(library, "DATA", library.DIMENSIONS)
    assert library.opened.__wrapped__() is None


@needs_library
def test_the_library_holds_the_lock_of_python_only_where_a_loop_says_so() -> None:
    described = json.loads(library.MANIFEST.read_text())["functions"]
    assert described["fairway.allocate.kernels.transport.cheapest_transport"]["releases_gil"]
    assert not described["fairway.place.kernels.plan_tasks"]["releases_gil"]
    assert ctypes.sizeof(ctypes.c_void_p) == 8


def test_how_loops_run_is_one_of_three() -> None:
    assert how(best_fit) in {"ahead", "jit", "no"}
    assert (
        run(
            "from fairway.compiled import how; from fairway.place.fits import best_fit; print(how(best_fit))",
            FAIRWAY_COMPILED="no",
        )
        == "no"
    )
