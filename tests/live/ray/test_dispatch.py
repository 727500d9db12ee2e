"""Commands of a controller reach the nodes that they are about, on nodes that are stood in for: no Ray is needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fairway.live.backend.answers import CommandAnswer, Refusal, RefusedError, SupersededError
from fairway.live.backend.commands import (
    EndRun,
    ExtendLeases,
    ForgetRun,
    HandOverRun,
    JobProgram,
    RetireJob,
    StartRun,
)
from fairway.live.backend.reports import CheckpointSaved, RunEnded, RunProgressed, RunReport, RunStarted
from fairway.live.backend.status import OutcomeKind, RunOutcome, RunState
from fairway.live.ray.node_link import NodeLink
from tests.live.ray.books_of_nodes import GONE, Site, gang, refused, run, start


@pytest.fixture
def site() -> Site:
    return Site()


# Where a run starts


def test_a_run_starts_on_the_node_of_its_workers_with_the_numbers_of_that_node(site: Site) -> None:
    answer = site.give(start(3, 3, 2))
    (given,) = site.given()["b"]
    assert isinstance(given, StartRun)
    assert (given.workers, given.part, given.meet, given.program.workdir) == ((1, 0), None, None, "/files/b")
    assert list(site.given()) == ["b"]
    assert answer.run is not None
    assert answer.run.workers == (3, 2)
    assert site.link("b").status.runs[0].workers == (1, 0)
    assert site.logs == [("job", 0, "b"), ("job", 1, "b")]
    assert site.books.newest == {"job": 3}
    assert site.books.runs() == [answer.run]


def test_a_gang_over_two_nodes_gets_its_ranks_in_order_and_meets_on_the_first(site: Site) -> None:
    answer = site.give(start(1, 3, 0, 2))
    (on_b,), (on_a,) = site.given()["b"], site.given()["a"]
    assert isinstance(on_a, StartRun)
    assert isinstance(on_b, StartRun)
    assert on_a.part is not None
    assert on_b.part is not None
    assert (on_b.workers, on_b.part.ranks, on_b.part.node_rank) == ((1, 0), (0, 1), 0)
    assert (on_a.workers, on_a.part.ranks, on_a.part.node_rank) == ((0,), (2,), 1)
    for part in (on_a.part, on_b.part):
        assert (part.world_size, part.nodes) == (3, ("b", "a"))
    assert on_a.meet == on_b.meet
    assert on_a.meet is not None
    assert (on_a.meet.address, on_a.meet.port, on_a.meet.agreement_port) == ("at-b", 2000, 2001)
    assert len(on_a.meet.secret) == 32
    assert site.logs == [("job", 0, "b"), ("job", 1, "b"), ("job", 2, "a")]
    assert answer.run is not None
    assert (answer.run.workers, answer.run.part) == ((3, 2, 0), None)


def test_checkpoints_are_where_all_nodes_keep_them_unless_the_job_says_where(site: Site) -> None:
    site.link("b").checkpoints = Path("/shared")
    site.give(start(1, 2, job="x"))
    site.give(replace(start(2, 3, job="y"), program=JobProgram("true", checkpoint_directory="/own")))
    site.give(replace(start(3, 3, job="z"), program=JobProgram("true", user="u")))
    programs = [command.program.checkpoint_directory for command in site.given()["b"] if isinstance(command, StartRun)]
    assert programs == ["/shared/x", "/own", None]


def test_what_was_started_is_started_once(site: Site) -> None:
    site.has("b", run(5))
    answer = site.give(start(5, 2))
    assert len(site.given()["b"]) == 1, "the node says how it stands"
    assert answer.run is not None
    fresh = Site()
    gang(fresh)
    answer = fresh.give(start(1, 1, 2, 3))
    assert (answer.result, fresh.given()) == ("known", {})
    assert answer.run is not None
    assert answer.run.workers == (1, 2, 3)


def test_an_older_lease_is_stale(site: Site) -> None:
    site.has("a", run(5, state=RunState.ENDED))
    site.has("a")
    for lease in (4, 5):
        assert site.give(start(lease, 0)) == CommandAnswer("stale", newest=5)
    assert site.given() == {}
    site.books.saw((run(3),))
    assert site.books.newest == {"job": 5}
    assert site.give(start(6, 0)).result == "accepted"


def test_a_worker_that_is_not_there_or_named_twice_is_refused(site: Site) -> None:
    assert refused(site, start(1, 4)) == Refusal.CANNOT_PLACE
    assert refused(site, start(1, 0, 0)) == Refusal.BAD_INPUT
    site.link("b").gone_since = 5.0
    assert refused(site, start(1, 2)) == Refusal.CANNOT_PLACE
    site.link("a").connected = False
    assert refused(site, start(1, 0)) == Refusal.CANNOT_PLACE
    del site.books.links["b"]
    assert refused(site, start(1, 2)) == Refusal.CANNOT_PLACE
    assert site.given() == {}


def test_nodes_that_are_gone_or_about_to_leave_offer_nothing(site: Site) -> None:
    assert [(one.number, one.node) for one in site.books.accelerators()] == [(0, "a"), (1, "a"), (2, "b"), (3, "b")]
    site.link("a").leaving = "in a minute"
    assert [one.number for one in site.books.accelerators()] == [2, 3]
    site.link("b").gone_since = 1.0
    assert site.books.accelerators() == ()


# What is in the way


def test_a_job_that_runs_on_another_node_has_to_be_ended_first(site: Site) -> None:
    site.has("a", run(1))
    assert refused(site, start(2, 2)) == Refusal.BUSY
    assert site.given() == {}
    assert site.books.newest == {"job": 1}


def test_on_its_own_node_the_agent_sees_to_that(site: Site) -> None:
    site.has("b", run(1))
    assert site.give(start(2, 2)).result == "accepted"
    assert len(site.given()["b"]) == 1


@pytest.mark.parametrize("state", [RunState.ENDING, RunState.WAITING])
def test_a_run_waits_for_the_older_one_that_ends_elsewhere_and_starts_then(site: Site, state: RunState) -> None:
    site.has("a", run(1, state=state))
    answer = site.give(start(2, 2))
    assert answer.run is not None
    assert (answer.result, answer.run.state, site.given()) == ("accepted", RunState.WAITING, {})
    assert site.books.newest == {"job": 2}
    assert site.give(start(2, 2)).result == "known"
    end = RunEnded(1, "job", 9.0, RunOutcome(OutcomeKind.STOPPED))
    site.books.release(replace(end, job="other"))
    assert site.to_do == [], "the older one still ends"
    site.has("a", run(1, state=RunState.ENDED))
    site.books.release(end)
    site.work()
    assert [type(command) for command in site.given()["b"]] == [StartRun]


def test_where_the_older_run_has_finished_the_one_that_waits_never_starts(site: Site) -> None:
    site.has("a", run(1, state=RunState.ENDING))
    site.give(start(2, 2))
    site.has("a", run(1, state=RunState.ENDED))
    site.books.release(RunEnded(1, "job", 9.0, RunOutcome(OutcomeKind.FINISHED)))
    assert (site.to_do, [end.lease for end in site.ends]) == ([], [2])


def test_what_waited_and_cannot_start_then_ends(site: Site) -> None:
    site.has("a", run(1, state=RunState.ENDING))
    site.give(start(2, 2))
    site.has("a")
    site.link("b").gone_since = 5.0
    site.books.release(RunEnded(1, "job", 9.0, RunOutcome(OutcomeKind.STOPPED)))
    site.work()
    assert [(end.lease, end.outcome.kind) for end in site.ends] == [(2, OutcomeKind.STOPPED)]


def test_a_gang_waits_for_what_holds_its_workers_anywhere(site: Site) -> None:
    site.has("a", run(1, 1, job="other", state=RunState.ENDING))
    assert site.give(start(2, 1, 2)).run is not None
    assert site.given() == {}
    fresh = Site()
    fresh.has("a", run(1, 0, job="other"))
    assert fresh.give(start(2, 1, 2)).result == "accepted", "another worker is held"
    fresh = Site()
    fresh.has("a", replace(run(1, 1, job="other"), accelerator="k80"))
    assert fresh.give(start(2, 1, 2)).result == "accepted", "one of another type is held"
    fresh = Site()
    fresh.has("a", run(1, 1, job="other"))
    assert refused(fresh, start(2, 1, 2)) == Refusal.BUSY
    fresh = Site()
    fresh.has("a", run(2, 1, job="other"))
    assert fresh.give(start(2, 1, 2)).result == "accepted", "it shares under the same lease"
    fresh = Site()
    fresh.has("a", run(1, 1, job="other"))
    assert fresh.give(start(2, 1)).result == "accepted", "alone on a node, the agent sees to that"


# Gangs


def test_a_gang_starts_everywhere_or_nowhere(site: Site) -> None:
    site.nodes["b"].fails = RefusedError(Refusal.SYSTEM, "no space")
    assert refused(site, start(1, 1, 2)) == Refusal.SYSTEM
    assert site.nodes["a"].given[1:] == [EndRun(1, "job", save=False)]
    assert site.books.newest == {}


def test_a_part_whose_node_does_not_answer_counts_as_starting(site: Site) -> None:
    site.nodes["b"].fails = GONE
    answer = site.give(start(1, 1, 2))
    (there,) = site.link("b").status.runs
    assert (answer.result, there.state, there.workers) == ("accepted", RunState.STARTING, (0,))
    assert there.part is not None
    assert answer.run is not None
    assert answer.run.workers == (1, 2)


def ended(kind: OutcomeKind, lease: int = 1) -> RunEnded:
    return RunEnded(lease, "job", 9.0, RunOutcome(kind, ended=9.0))


def test_what_a_run_of_one_node_reports_is_told_as_it_is(site: Site) -> None:
    site.has("a", run(1))
    report = RunStarted(1, "job", 5.0, 4.0)
    assert site.books.take_in(site.link("a"), report) == [report]
    assert site.link("a").status.runs[0].started == 4.0
    unknown = RunStarted(9, "job", 5.0, 4.0)
    assert site.books.take_in(site.link("a"), unknown) == [unknown]


def test_of_a_gang_is_told_what_all_of_its_parts_have_done(site: Site) -> None:
    gang(site)
    a, b, books = site.link("a"), site.link("b"), site.books
    assert books.take_in(a, RunStarted(1, "job", 5.0, 4.0)) == []
    assert books.take_in(b, RunStarted(1, "job", 7.0, 6.0)) == [RunStarted(1, "job", 7.0, 6.0)]
    assert books.take_in(a, RunStarted(1, "job", 8.0, 4.0)) == [], "it was told"
    assert books.take_in(a, RunProgressed(1, "job", 9.0, 10, 1.0)) == []
    assert books.take_in(b, RunProgressed(1, "job", 9.5, 20, 2.0)) == [RunProgressed(1, "job", 9.5, 30, 3.0)]
    assert books.take_in(a, CheckpointSaved(1, "job", 10.0, 8, 0.5)) == []
    # 8 steps of one rank, and 14 of two: all three have done 7.
    (saved,) = books.take_in(b, CheckpointSaved(1, "job", 11.0, 14, 0.5))
    assert isinstance(saved, CheckpointSaved)
    assert saved.checkpoint_step == 21
    assert books.take_in(a, CheckpointSaved(1, "job", 12.0, 9, 0.5)) == [], "it is the same for all"
    assert books.take_in(a, ended(OutcomeKind.FINISHED)) == []
    (end,) = books.take_in(b, ended(OutcomeKind.FINISHED))
    assert isinstance(end, RunEnded)
    assert end.outcome.kind is OutcomeKind.FINISHED
    assert site.to_do == []


def test_when_a_part_fails_the_others_end_at_once(site: Site) -> None:
    gang(site)
    assert site.books.take_in(site.link("a"), ended(OutcomeKind.FAILED)) == []
    site.work()
    assert site.given() == {"b": [EndRun(1, "job", save=False)]}


def test_when_a_node_is_gone_the_other_parts_of_its_gangs_end(site: Site) -> None:
    gang(site)
    site.link("a").put(run(9, job="alone"))
    site.link("a").connected = False
    site.books.break_gangs_of(site.link("a"))
    site.work()
    assert site.given() == {"b": [EndRun(1, "job", save=False)]}


def test_a_part_that_its_agent_does_not_know_breaks_the_gang(site: Site) -> None:
    gang(site)
    site.books.break_torn_gangs()
    assert site.to_do == []
    site.has("a")
    site.link("a").connected = False
    site.books.break_torn_gangs()
    assert site.to_do == [], "a node that cannot be reached may still have it"
    (told,) = site.books.runs()
    assert told.state is RunState.STARTING
    site.link("a").connected = True
    (told,) = site.books.runs()
    assert told.state is RunState.ENDING
    site.books.break_torn_gangs()
    site.work()
    assert site.given() == {"b": [EndRun(1, "job", save=False)]}


def test_a_gang_whose_node_is_out_of_the_books_is_torn(site: Site) -> None:
    gang(site)
    del site.books.links["a"]
    site.books.break_torn_gangs()
    site.work()
    assert site.given() == {"b": [EndRun(1, "job", save=False)]}


# Ends, hand-overs, and what is forgotten


def test_an_end_goes_to_the_node_that_has_the_run(site: Site) -> None:
    site.has("b", run(1))
    answer = site.give(EndRun(1, "job"))
    assert answer.run is not None
    assert (answer.run.state, answer.run.workers) == (RunState.ENDING, (2,))
    assert site.given() == {"b": [EndRun(1, "job")]}
    assert site.link("b").status.runs[0].state is RunState.ENDING
    assert site.give(EndRun(2, "job")) == CommandAnswer("stale", newest=1)
    assert site.give(EndRun(2, "never")) == CommandAnswer("stale", newest=0)


@pytest.mark.parametrize("connected", [True, False])
def test_what_a_node_that_is_away_is_asked_is_noted(site: Site, connected: bool) -> None:
    site.has("b", run(1))
    site.link("b").connected = connected
    site.nodes["b"].fails = GONE
    answer = site.give(EndRun(1, "job"))
    assert answer.run is not None
    assert (answer.result, answer.run.state, answer.run.workers) == ("accepted", RunState.ENDING, (2,))
    assert site.link("b").status.runs[0].state is RunState.ENDING
    assert len(site.nodes["b"].given) == connected
    site.has("b", run(1, state=RunState.ENDED))
    answer = site.give(EndRun(1, "job"))
    assert answer.run is not None
    assert answer.run.state is RunState.ENDED


def test_all_parts_of_a_gang_are_ended_and_it_is_told_as_one(site: Site) -> None:
    gang(site)
    for name in "ab":
        site.link(name).connected = False
    answer = site.give(EndRun(1, "job"))
    assert answer.run is not None
    assert (answer.run.state, answer.run.workers) == (RunState.ENDING, (1, 2, 3))


def test_a_run_that_waits_is_called_off_handed_over_and_forgotten_here(site: Site) -> None:
    site.has("a", run(1, state=RunState.ENDING))
    site.give(start(2, 2))
    assert site.give(HandOverRun("job", 2, 3)).result == "accepted"
    assert site.books.newest == {"job": 3}
    assert site.give(HandOverRun("job", 2, 3)).result == "known"
    answer = site.give(EndRun(3, "job"))
    assert answer.run is not None
    assert answer.run.state is RunState.ENDED
    assert site.give(ForgetRun(3, "job")) == CommandAnswer("accepted")
    assert site.books.waiting.statuses() == []
    assert site.given() == {}


def test_a_run_is_handed_over_once(site: Site) -> None:
    site.has("b", run(1))
    assert site.give(HandOverRun("job", 1, 4)).result == "accepted"
    assert [one.lease for one in site.link("b").status.runs] == [4]
    assert site.books.newest == {"job": 4}
    assert site.give(HandOverRun("job", 1, 4)).result == "accepted", "the node that has the new lease says so"
    assert len(site.given()["b"]) == 2
    assert site.give(HandOverRun("job", 7, 8)) == CommandAnswer("stale", newest=4)
    assert site.books.newest == {"job": 4}


def test_a_run_is_forgotten_and_a_node_that_is_gone_leaves_the_books(site: Site) -> None:
    site.has("a", run(1, state=RunState.ENDED), run(2, job="other", state=RunState.ENDED))
    site.link("a").connected, site.link("a").gone_since = False, 5.0
    assert site.give(ForgetRun(9, "job")) == CommandAnswer("known")
    assert site.give(ForgetRun(1, "job")).result == "accepted"
    assert [one.lease for one in site.link("a").status.runs] == [2]
    assert site.given() == {}
    assert site.give(ForgetRun(2, "other")).result == "accepted"
    assert list(site.books.links) == ["b"]
    site.has("b", run(3, state=RunState.ENDED))
    site.give(ForgetRun(3, "job"))
    assert site.given() == {"b": [ForgetRun(3, "job")]}
    assert list(site.books.links) == ["b"], "one that is there stays"
    site.books.drop_if_done(site.link("b"))
    site.books.drop_if_done(NodeLink("b", gone_since=5.0))
    assert list(site.books.links) == ["b"], "nor does another of its name push it out"


def test_a_job_is_retired_wherever_it_was(site: Site) -> None:
    site.has("a", run(1, state=RunState.ENDED))
    site.link("b").status = replace(site.link("b").status, former=("job",))
    site.nodes["a"].fails = GONE
    assert site.give(RetireJob("job")) == CommandAnswer("accepted")
    assert site.given() == {"a": [RetireJob("job")], "b": [RetireJob("job")]}
    assert not site.link("a").knows("job")
    assert not site.link("b").knows("job")
    assert site.books.newest == {}
    site.give(RetireJob("job"))
    assert len(site.given()["b"]) == 1, "it is not known there any more"


def test_leases_are_prolonged_on_all_nodes_that_can_be_reached(site: Site) -> None:
    site.has("a", run(1, state=RunState.ENDING))
    site.give(start(2, 2))
    site.nodes["a"].leases, site.nodes["b"].leases = (9, 4), (7,)
    assert site.give(ExtendLeases(50.0)).leases == (2, 4, 7, 9)
    site.nodes["a"].fails = GONE
    assert site.give(ExtendLeases(50.0)).leases == (2, 7)
    site.link("b").connected = False
    assert site.give(ExtendLeases(50.0)).leases == (2,)
    site.nodes["a"].fails = SupersededError("another")
    with pytest.raises(SupersededError):
        site.give(ExtendLeases(50.0))


def test_no_report_is_made_of_nothing(site: Site) -> None:
    assert site.books.runs() == []
    site.books.release(RunEnded(1, "job", 9.0, RunOutcome(OutcomeKind.FINISHED)))
    assert (site.ends, site.to_do) == ([], [])


def test_what_is_told_of_a_gang_is_a_report(site: Site) -> None:
    gang(site)
    site.books.take_in(site.link("a"), RunStarted(1, "job", 5.0, 4.0))
    told: list[RunReport] = site.books.take_in(site.link("b"), RunStarted(1, "job", 5.0, 3.0))
    assert told == [RunStarted(1, "job", 5.0, 4.0)], "it has started when its last part has"
