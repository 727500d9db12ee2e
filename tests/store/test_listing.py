"""Jobs page by page, read in one go: the same as read row by row."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from fairway.errors import InputError
from fairway.store import Store
from fairway.store.job_changes import change_job, record_checkpoint
from fairway.store.listing import ASKED, NODES, PRIORITY_CLASS, listing
from fairway.store.queries import list_jobs
from fairway.store.states import JobState
from fairway.store.submissions import Submission, submit
from tests.store.making import running, with_workers

ASKING = [None, "v100:2", "[a100, v100]:2", ["a100", "v100"], {"A100": 2}, 'ä"\\/\n\u2028', {}]


@pytest.fixture
def filled(store: Store) -> Store:
    with_workers(store)
    jobs = [
        Submission(
            spec={"run": "x", "resources": {"accelerators": asked}}
            if asked is not None
            else {"run": "x", "num_nodes": 3},
            name=f'na"me · {number}',
            team=f"team-{number % 2}" if number % 3 else None,
            weight=1 / (number + 3),
            steps=1e15 / 7 if number % 2 else None,
        )
        for number, asked in enumerate(ASKING)
    ]
    for number, job in enumerate(jobs):
        store.write(submit, [job], at=1794794979.9066257 + number / 7)
    running(store, "job-1", at=1794794999.1234567)
    store.write(record_checkpoint, "job-2", 1e14 / 3, at=1.0)
    store.write(change_job, "job-3", JobState.FAILED, at=1794795000.7654321, exit_code=3)
    return store


@pytest.mark.parametrize(
    "asked",
    [
        {}, {"limit": 3}, {"limit": 3, "after": 4}, {"newest_first": False, "limit": 2}, {"team": "team-1"},
        {"states": [JobState.FAILED, JobState.RUNNING]}, {"team": "none"}, {"newest_first": False, "after": 5},
        {"limit": 7}, {"states": [JobState.QUEUED], "team": "team-0", "after": 7},
    ],
)  # fmt: skip
def test_a_listing_is_what_is_found_row_by_row(filled: Store, asked: dict[str, object]) -> None:
    page = filled.read(list_jobs, **asked)
    found = filled.read(listing, **asked)
    assert found.after == page.after
    assert len(found.jobs) == len(page.jobs)
    for listed, job in zip(found.jobs, page.jobs, strict=True):
        expected = asdict(job)
        asks = listed.pop(ASKED)
        assert json.loads(asks or "null") == expected["spec"].get("resources", {}).get("accelerators")
        assert listed.pop(PRIORITY_CLASS) == expected["spec"].get("priority_class")
        nodes = listed.pop(NODES)
        assert (None if nodes is None else int(nodes)) == expected["spec"].get("num_nodes")
        for name, value in listed.items():
            exact = float(value) if isinstance(expected[name], float) else value
            assert exact == expected[name], name


def test_a_page_has_its_limits(store: Store) -> None:
    for limit in (0, 1001):
        with pytest.raises(InputError, match=f"limit: {limit} given, expected 1 to 1000"):
            store.read(listing, limit=limit)
