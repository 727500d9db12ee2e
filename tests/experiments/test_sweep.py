"""Sweeps: the product of their lists, kept row by row, interrupted and continued, repeated to the same bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars
import pytest

from fairway import InputError, Sweep, sweep
from fairway.experiments.results import Results, complete, read_rows
from fairway.experiments.sweep import read_sweep

SMALL = Sweep(
    policies=["fifo", "isolated"], rates=[2.0, 20.0], seeds=[0, 1], clusters=["v100=2,k80=2"], generate="jobs=6,slos"
)


def test_the_points_are_the_product_of_the_lists_in_order() -> None:
    both = replace(SMALL, options={"round": ["6m", "12m"], "restart": 30})
    assert len(both.points) == 2 * 2 * 2 * 2
    first, second = both.points[0].key, both.points[1].key
    assert (first["policy"], first["round"], first["restart"], first["rate"], first["seed"]) == (
        "fifo",
        "6m",
        "30",
        2.0,
        0,
    )
    assert (second["rate"], second["seed"]) == (2.0, 1)
    assert both.points[-1].key["round"] == "12m"


def test_a_sweep_that_was_interrupted_goes_on_and_gives_the_same_bytes(tmp_path: Path) -> None:
    whole = sweep(SMALL, tmp_path / "whole.parquet", processes=1)
    assert whole.height == 8
    assert (whole["completed"] == 6).all()
    assert whole["hit_rate"].is_between(0, 1).all()

    class Enough(Exception):  # noqa: N818
        pass

    def stop_after_three(position: int) -> None:
        if position == 2:
            raise Enough

    part = tmp_path / "part.parquet"
    with pytest.raises(Enough):
        sweep(SMALL, part, processes=1, told=stop_after_three)
    assert len(read_rows(part)) == 3
    done: list[int] = []
    sweep(SMALL, part, processes=1, told=done.append)
    assert done == [3, 4, 5, 6, 7]
    assert part.read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_rows_that_come_in_another_order_give_the_same_bytes(tmp_path: Path) -> None:
    rows = {position: point() for position, point in enumerate(SMALL.points[:3])}
    for name, order in (("a", (0, 1, 2)), ("b", (2, 0, 1))):
        results = Results(replace(SMALL, policies=["fifo"], rates=[2.0, 20.0]), tmp_path / name)
        for position in order:
            results.add(position, rows[position])
        results.save()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_results_of_another_sweep_are_not_added_to(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    results = Results(replace(SMALL, policies=["fifo"], rates=[2.0], seeds=[0]), path)
    complete(results, processes=1)
    with pytest.raises(
        InputError, match=r"s.parquet: has a row that is not of this sweep \(policy fifo, .*remove this"
    ):
        Results(replace(SMALL, generate="jobs=7,slos"), path)
    assert Results(SMALL, path).begun == 1


def test_serving_is_swept_too(tmp_path: Path) -> None:
    serving = Sweep(schedulers=["compass", "hash"], rates=[1.0], seeds=[0], options={"requests": 20})
    frame = sweep(serving, tmp_path / "s.parquet", processes=1)
    assert frame["scheduler"].to_list() == ["compass", "hash"]
    assert (frame["latency_mean"] > 0).all()
    assert serving.load_unit == "requests per second"


def test_a_trace_is_swept_by_how_fast_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("arrival,duration\n0,3600\n3600,3600\n")
    frame = sweep(
        Sweep(policies=["fifo"], rates=[1.0, 2.0], seeds=[0], clusters=["v100=1"], trace=str(path)),
        tmp_path / "s.parquet",
        processes=1,
    )
    assert frame["jct_mean"].to_list() == [3600.0, 4500.0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policies": []}, "expected either policies"),
        ({"schedulers": ["compass"]}, "expected either policies"),
        ({"policies": ["fifo", "fifo"]}, "policies: fifo given twice"),
        ({"policies": ["fif"]}, "policy 'fif' is not known, did you mean 'fifo'"),
        ({"rates": []}, "rates, seeds: nothing given"),
        ({"rates": [float("inf")]}, "rates: inf given"),
        ({"seeds": [-1]}, "seeds: -1 given"),
        ({"clusters": []}, "clusters: nothing given"),
        ({"clusters": ["v100"]}, "cluster: 'v100' given"),
        ({"generate": None}, "expected either generate"),
        ({"generate": "multi-gpu"}, "generate: no jobs=COUNT given"),
        ({"generate": "jobs=5,rate=4"}, "'rate' given twice"),
        ({"options": {"rond": 1}}, "options: 'rond' is not known, did you mean 'round'"),
        ({"options": {"round": "soon"}}, "options.round: "),
    ],
)
def test_what_cannot_be_swept_is_refused_before_anything_runs(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        assert replace(SMALL, **wrong).points


def test_a_file_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(
        "policies: [fifo, isolated]\nrates: [2, 20]\nseeds: [0, 1]\nclusters: ['v100=2,k80=2']\n"
        "generate: jobs=6,slos\noptions: {round: [6m]}\n"
    )
    read = Sweep(**read_sweep(str(path)))
    assert [point.key for point in read.points] == [
        point.key for point in replace(SMALL, options={"round": ["6m"]}).points
    ]
    path.write_text("polices: [fifo]\n")
    with pytest.raises(InputError, match=r"polices.*policies"):
        read_sweep(str(path))


def test_a_file_that_is_no_result_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_text("hello")
    with pytest.raises(InputError, match="not a parquet file; name one that fairway sweep has written"):
        read_rows(path)
    polars.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(InputError, match="not the results of a sweep"):
        read_rows(path)
    with pytest.raises(InputError, match=r"cannot be read: No such file or directory; name"):
        read_rows(tmp_path / "none.parquet")
