"""Choosing the threads of workers from a profile: the cheapest that keep the SLOs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.errors import InputError
from fairway.live.serving.application.definition import ServedWorkflow, load_application
from fairway.live.serving.application.thread_choice import choose_threads

_APP = "tests.live.serving.configured:arrays"
_PROFILE = """
workflows:
  arrays:
    slo_seconds: 2.0
    stages:
      - {{name: Grow, seconds: {grow}}}
      - {{name: Total, seconds: {total}}}
    edges: [[Grow, Total]]
"""


def _workflows(directory: Path, grow: str, total: str) -> list[ServedWorkflow]:
    path = directory / "profile.yaml"
    path.write_text(_PROFILE.format(grow=grow, total=total))
    return list(load_application(_APP, profile=path).workflows.values())


def test_few_threads_are_cheaper_if_they_are_in_time(tmp_path: Path) -> None:
    workflows = _workflows(tmp_path, "{cpu: {1: 0.5}, cpu-2: {1: 0.3}}", "{cpu: {1: 0.5}, cpu-2: {1: 0.3}}")
    choice = choose_threads(workflows)
    assert (choice.threads, choice.in_time, choice.seconds) == (1, True, (1.0,))
    assert choice.cpu_seconds == pytest.approx(1.0)
    assert str(choice) == "1 (the cheapest that keep the SLOs: 1 CPU-seconds for a request of each workflow)"


def test_more_threads_are_taken_where_one_is_too_slow(tmp_path: Path) -> None:
    both = "{cpu: {1: 1.5}, cpu-2: {1: 0.8}, cpu-4: {1: 0.5}}"
    choice = choose_threads(_workflows(tmp_path, both, both))
    assert (choice.threads, choice.in_time) == (2, True)
    assert choice.cpu_seconds == pytest.approx(2 * 1.6)


def test_batches_count_and_equals_go_to_the_fewer(tmp_path: Path) -> None:
    grow = "{cpu: {1: 0.2, 4: 0.9}, cpu-2: {1: 0.1, 4: 0.2}}"
    choice = choose_threads(_workflows(tmp_path, grow, "{cpu: {1: 0.1}, cpu-2: {1: 0.1}}"))
    assert choice.threads == 1  # 0.2 and 0.1; on two threads, 0.1 in a batch of four and 0.2
    assert choice.cpu_seconds == pytest.approx(0.3)
    grow = "{cpu: {1: 0.2, 4: 0.9}, cpu-2: {1: 0.1, 4: 0.1}}"
    assert choose_threads(_workflows(tmp_path, grow, "{cpu: {1: 0.1}, cpu-2: {1: 0.05}}")).threads == 2


def test_if_nothing_is_in_time_the_fastest_is_taken(tmp_path: Path) -> None:
    both = "{cpu: {1: 9.0}, cpu-2: {1: 4.0}, cpu-4: {1: 5.0}}"
    choice = choose_threads(_workflows(tmp_path, both, both))
    assert (choice.threads, choice.in_time) == (2, False)
    assert "too slow for the SLOs" in str(choice)


def test_what_was_not_measured_cannot_be_chosen(tmp_path: Path) -> None:
    choice = choose_threads(_workflows(tmp_path, "{cpu-2: {1: 0.1}}", "{cpu: {1: 0.1}, cpu-2: {1: 0.1}}"))
    assert choice.threads == 2
    with pytest.raises(InputError, match="no number of threads was measured for all stages"):
        choose_threads(_workflows(tmp_path, "{cpu-2: {1: 0.1}}", "{cpu: {1: 0.1}}"))
    with pytest.raises(InputError, match="workflow 'unhurried' has no SLO"):
        choose_threads([*load_application("tests.live.serving.configured:unhurried").workflows.values()])
