"""Plans that broke a promise before the bug was mended that they found; `docs/reliability.md` says which."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairway.simtest.plan import Plan
from fairway.simtest.training.component import TRAINING

PLANS = sorted(Path(__file__).parent.joinpath("plans").glob("*.json"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_bug_that_was_found_stays_mended(path: Path) -> None:
    history = TRAINING.run(Plan.from_dict(json.loads(path.read_text())))
    assert history.violations == ()
    assert history.faults
