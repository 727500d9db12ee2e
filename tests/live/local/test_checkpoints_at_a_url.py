"""A job whose checkpoints are at a URL, run as people run it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.installation import Installation, until
from tests.live.training.jobs import COUNTING


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    options = ("--emulate", "v100=1", "--port", "0", "--round", "1s")
    with Installation(tmp_path_factory.mktemp("live"), *options) as installation:
        installation.up()
        yield installation


def steps_of(trace: Path) -> list[int]:
    return [int(line) for line in trace.read_text().splitlines()] if trace.exists() else []


def job(tmp_path: Path, url: str, steps: int, seconds: float) -> str:
    script = tmp_path / "counting.py"
    script.write_text(COUNTING)
    (tmp_path / "job.yaml").write_text(
        f"run: [{sys.executable}, {script}, '{steps}', '{seconds}', {tmp_path / 'trace'}]\nsteps: {steps}\n"
        f"checkpoint: {{interval: 1s, directory: '{url}'}}\n"
    )
    return str(tmp_path / "job.yaml")


def test_a_job_goes_on_from_what_was_sent_while_it_ran_and_when_it_ended(live: Installation, tmp_path: Path) -> None:
    """The second job has another local directory, as one on another machine would."""
    url, trace = f"file://{tmp_path}/bucket/sum", tmp_path / "trace"
    first = live.printed("submit", "--quiet", job(tmp_path, url, 400, 0.02)).strip()
    until(lambda: list(tmp_path.glob("bucket/sum/manifest-*")), "for something to be sent while it runs")
    assert live.state_of(first) == "running"
    live.printed("cancel", first)
    until(lambda: live.state_of(first) == "cancelled", "for it to end")
    done = len(steps_of(trace))
    shutil.rmtree(live.home / "agent" / "checkpoints" / first)
    second = live.printed("submit", "--quiet", job(tmp_path, url, done + 10, 0.02)).strip()
    until(lambda: live.state_of(second) == "succeeded", "for it to go on and end")
    log = live.printed("logs", second)
    assert f"the sum is {sum(range(done + 10))}" in log
    assert "files were brought" in log
    steps = steps_of(trace)[done:]
    assert 0 < steps[0] <= done, "it went on from a checkpoint, and did not begin anew"
    assert steps == list(range(steps[0], done + 10))


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("no-such://bucket", "Protocol not known: no-such"),
        ("memory://bucket", "gone with each process"),
    ],
)
def test_a_url_that_will_not_do_is_refused_when_the_job_is_submitted(
    live: Installation, tmp_path: Path, url: str, why: str
) -> None:
    said = live.refused("submit", job(tmp_path, url, 1, 0))
    assert f"checkpoint.directory: '{url}' given" in said
    assert why in said


def test_a_gang_that_may_span_nodes_has_to_share_a_directory(live: Installation, tmp_path: Path) -> None:
    file = Path(job(tmp_path, "file:///data", 1, 0))
    file.write_text(file.read_text() + "num_nodes: 2\n")
    assert "give a directory that the nodes share" in live.refused("submit", str(file))


def test_a_store_that_cannot_be_reached_fails_the_job_with_the_reason(live: Installation, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    name = live.printed("submit", "--quiet", job(tmp_path, f"file://{tmp_path}/file/bucket", 1, 0)).strip()
    until(lambda: live.state_of(name) == "failed", "for it to fail")
    assert "checkpoints: file://" in live.printed("status", name)
