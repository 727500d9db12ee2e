"""Quotas of teams, against a count of everything that was let in and has not ended."""

from __future__ import annotations

from random import Random

import pytest

from fairway.errors import InputError
from fairway.jobs import Entity
from fairway.jobs.description import JobDescription, parse_job
from fairway.live.training.admission.quotas import TOTAL, Quotas

TYPES = ["V100", "K80"]
TEAMS = {
    "lab": Entity(),
    "vision": Entity(parent="lab"),
    "robots": Entity(parent="vision"),
    "speech": Entity(parent="lab"),
    "guests": Entity(),
}
QUOTAS = {"lab": {TOTAL: 6}, "robots": {"v100": 2}, "speech": {"k80": 3, TOTAL: 4}}


def _job(accelerators: str) -> JobDescription:
    return parse_job(f"run: python train.py\nresources: {{accelerators: {accelerators}}}", "job")


def _counted(jobs: list[tuple[JobDescription, str | None]], spec: JobDescription, team: str | None) -> set[str]:
    """The teams that would have too much with another job, counted one by one."""
    above: dict[str | None, list[str]] = {
        None: [], "lab": ["lab"], "vision": ["vision", "lab"], "robots": ["robots", "vision", "lab"],
        "speech": ["speech", "lab"], "guests": ["guests"], "strangers": ["strangers"],
    }  # fmt: skip
    full = set()
    for name, most in QUOTAS.items():
        for kind, number in most.items():

            def counts(job: JobDescription, of: str | None, name: str = name, kind: str = kind) -> int:
                types = set(job.accelerators.types)
                return job.accelerators.count if name in above[of] and (kind == TOTAL or kind in types) else 0

            asked = counts(spec, team)
            if asked and asked + sum(counts(job, of) for job, of in jobs) > number:
                full.add(name)
    return full


def test_a_job_is_let_in_exactly_while_no_team_that_it_counts_for_is_full() -> None:
    draws = Random(7)
    quotas = Quotas(QUOTAS, TEAMS, TYPES)
    inside: list[tuple[JobDescription, str | None]] = []
    kinds = [_job(text) for text in ("v100:1", "v100:2", "k80:1", "k80:3", "'[v100, k80]:1'", "'[p100, k80]:2'")]
    seen = set()
    for _ in range(600):
        spec, team = draws.choice(kinds), draws.choice([*TEAMS, None, "strangers"])
        full = _counted(inside, spec, team)
        said = quotas.over(spec, team)
        assert (said[0] if said else None) in (full or {None}), (team, spec.accelerators)
        seen.add(said[0] if said else None)
        if said is None and team not in {None, "guests", "strangers", "vision"}:
            quotas.take(spec, team)
            inside.append((spec, team))
        if inside and draws.random() < 0.4:
            job, of = inside.pop(draws.randrange(len(inside)))
            quotas.give_back(job, of)
    assert seen == {None, "lab", "robots", "speech"}


def test_what_is_full_is_said_with_all_its_numbers() -> None:
    quotas = Quotas({"robots": {"v100": 2}, "lab": {TOTAL: 3}}, TEAMS, TYPES)
    quotas.take(_job("v100:1"), "robots")
    assert quotas.over(_job("v100:1"), "robots") is None, "as many as there may be"
    said = "team 'robots' may have 2 v100 at a time, its jobs have 1 and this one asks for 2"
    assert quotas.over(_job("v100:2"), "robots") == ("robots", said)
    said = "team 'lab' may have 3 accelerators at a time, its jobs have 1 and this one asks for 3"
    assert quotas.over(_job("k80:3"), "robots") == ("lab", said)


def test_a_job_that_is_larger_than_a_quota_is_refused_at_once_with_what_to_do() -> None:
    quotas = Quotas({"robots": {"v100": 2}, "lab": {TOTAL: 3}}, TEAMS, TYPES)
    quotas.take(_job("v100:2"), "robots")
    quotas.refuse_too_large(_job("v100:2"), "robots")
    quotas.refuse_too_large(_job("v100:9"), "guests")
    quotas.refuse_too_large(_job("v100:9"), None)
    with pytest.raises(InputError, match="3 asked for, but team 'robots' may have 2 v100 at a time; ask for fewer"):
        quotas.refuse_too_large(_job("v100:3"), "robots")
    with pytest.raises(InputError, match="4 asked for, but team 'lab' may have 3 accelerators at a time"):
        quotas.refuse_too_large(_job("k80:4"), "robots")


def test_teams_with_a_quota_are_those_from_a_jobs_own_to_the_top() -> None:
    quotas = Quotas(QUOTAS, TEAMS, TYPES)
    assert list(quotas.teams_of("robots")) == ["robots", "lab"]
    assert list(quotas.teams_of("guests")) == []
    assert list(quotas.teams_of("strangers")) == []
    assert list(quotas.teams_of(None)) == []


def test_a_job_that_names_no_type_counts_against_the_quota_of_each_type_of_the_cluster() -> None:
    quotas = Quotas({"lab": {"k80": 1, "p100": 0}}, TEAMS, TYPES)
    anything = parse_job("run: python train.py", "job")
    assert quotas.over(anything, "lab") is None, "the cluster has no p100"
    quotas.take(anything, "lab")
    assert quotas.over(_job("k80:1"), "lab") is not None
    assert quotas.over(_job("v100:1"), "lab") is None


def test_without_quotas_nothing_is_counted() -> None:
    quotas = Quotas({}, TEAMS, TYPES)
    quotas.take(_job("v100:100"), "lab")
    assert quotas.over(_job("v100:100"), "lab") is None
