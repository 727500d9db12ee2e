"""Plans that broke a promise before the bug was mended that they found; `docs/reliability.md` says which."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairway.simtest.plan import Plan
from fairway.simtest.runner import component_named

PLANS = sorted(Path(__file__).parent.glob("*/plans/*.json"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_bug_that_was_found_stays_mended(path: Path) -> None:
    plan = Plan.from_dict(json.loads(path.read_text()))
    history = component_named(plan.component).run(plan)
    assert history.violations == ()
    assert history.faults
