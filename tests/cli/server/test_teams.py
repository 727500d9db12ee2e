"""Teams with their weights, in words and from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.cli.server.teams import read_teams, read_teams_file, refuse_unknown_types
from fairway.errors import InputError
from fairway.jobs import Entity
from fairway.live.training.admission.priorities import PriorityClass


def test_in_words() -> None:
    assert read_teams("vision=2, speech = 0.5:fifo") == {"vision": Entity(2.0), "speech": Entity(0.5, "fifo")}


def test_from_a_file_with_teams_of_teams(tmp_path: Path) -> None:
    file = tmp_path / "teams.yaml"
    file.write_text("teams:\n  all: {}\n  vision: {weight: 3, parent: all}\n  speech: {parent: all, policy: fifo}\n")
    assert read_teams(str(file)) == {
        "all": Entity(),
        "vision": Entity(3.0, "fairness", "all"),
        "speech": Entity(1.0, "fifo", "all"),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("teams: {a: {weight: 0}}", "teams.a.weight: 0 given, expected a number above 0"),
        ("teams: {a: {wait: 1}}", "teams.a.wait: no such field"),
        ("teams: {a: {parent: b}}", "teams.a.parent: no team 'b'"),
        ("teams: {a: {parent: b}, b: {parent: a}}", "teams.a.parent: goes round in a circle"),
        ("teams: {a: {parent: a}}", "teams.a.parent: goes round in a circle"),
        ("vision: 2", "vision: no such field; take it out or use one of teams"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "teams.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_teams(str(file))
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(file))


@pytest.mark.parametrize("text", ["vision=0", "vision=x", "a=1,a=2", "vision=1:lifo"])
def test_words_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--teams: "):
        read_teams(text)


def test_neither_words_nor_a_file_is_refused() -> None:
    with pytest.raises(InputError, match="vision: cannot be read: No such file"):
        read_teams("vision")


def test_quotas_are_numbers_in_all_or_by_type(tmp_path: Path) -> None:
    file = tmp_path / "teams.yaml"
    file.write_text("teams: {a: {quota: {V100: 4, k80: 0}}, b: {quota: 3, parent: a}, c: {}}\n")
    quotas = read_teams_file(str(file)).quotas
    assert quotas == {"a": {"v100": 4, "k80": 0}, "b": {"": 3}}
    refuse_unknown_types(quotas, ["V100", "k80"])
    with pytest.raises(InputError, match=r"teams\.a\.quota: no accelerator 'k80'; known: v100"):
        refuse_unknown_types(quotas, ["v100"])


@pytest.mark.parametrize(
    "quota", ["-1", "many", "{v100: -1}", "{v100: many}", "[1]", "1.5", "1e9", "true", "{v100: [1]}"]
)
def test_a_wrong_quota_is_one_line(tmp_path: Path, quota: str) -> None:
    file = tmp_path / "teams.yaml"
    file.write_text(f"teams: {{a: {{quota: {quota}}}}}\n")
    with pytest.raises(
        InputError, match=r"teams\.a\.quota: .* given, expected accelerators at a time, as in 4"
    ) as refused:
        read_teams(str(file))
    assert "\n" not in str(refused.value)


def test_priority_classes_stand_beside_the_teams(tmp_path: Path) -> None:
    file = tmp_path / "teams.yaml"
    file.write_text(
        "teams: {a: {}}\npriority_classes: {urgent: {value: 9, teams: [a]}, calm: {value: -1, preempts: false}}"
    )
    assert read_teams_file(str(file)).priority_classes == {
        "urgent": PriorityClass(9, teams=("a",)),
        "calm": PriorityClass(-1, preempts=False),
    }
    file.write_text("priority_classes: {urgent: {value: 9}}")
    assert read_teams_file(str(file)) == ({}, {}, {"urgent": PriorityClass(9)})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{a: {}}", "priority_classes.a.value: .*expected a whole number from -1000 to 1000"),
        ("{a: {value: 1.5}}", "priority_classes.a.value: 1.5 given, expected a whole number"),
        ("{a: {value: 100000}}", "priority_classes.a.value: 100000 given, expected a whole number"),
        ("{a: {value: 1, preempts: perhaps}}", "priority_classes.a.preempts: .*expected true or false"),
        ("{a: {value: 1, teams: [x]}}", "priority_classes.a.teams: no team 'x'; add it"),
        ("{a: {value: 1, team: x}}", "priority_classes.a.team"),
        ("3", "priority_classes: 3 given, expected priority classes by name"),
    ],
)
def test_a_wrong_priority_class_is_one_line(tmp_path: Path, given: str, said: str) -> None:
    file = tmp_path / "teams.yaml"
    file.write_text(f"teams: {{red: {{}}}}\npriority_classes: {given}\n")
    with pytest.raises(InputError, match=said) as refused:
        read_teams(str(file))
    assert "\n" not in str(refused.value)


def test_a_file_that_says_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "teams.yaml").write_text("{}")
    with pytest.raises(InputError, match="neither teams nor priority classes given"):
        read_teams(str(tmp_path / "teams.yaml"))
