"""From a description and a grant to a command."""

from __future__ import annotations

from fairway.engine.training.messages import Grant
from fairway.jobs.description import parse_job
from fairway.live.backend.codec import COMMANDS
from fairway.live.backend.commands import JobProgram, StartRun
from fairway.live.training.start_command import start_of


def test_a_grant_becomes_a_command_that_a_backend_reads_back() -> None:
    spec = parse_job(
        "run: [python, train.py]\nresources: {accelerators: V100:2}\nsteps: 100\npreemptible: false\n"
        "checkpoint: {interval: 10m, seconds: 5}\ngrace: 2s\nenvs: {A: 1}\nworkdir: /tmp",
        "job.yaml",
    )
    grant = Grant(7, ("train",), "v100", (3, 1), until=1e9)
    start = start_of(spec, "train", grant, attempt=2, steps_per_second=4.0)
    assert start == StartRun(
        lease=7,
        job="train",
        program=JobProgram(
            run=("python", "train.py"),
            workdir="/tmp",
            envs={"A": "1"},
            steps=100,
            checkpoint_every_seconds=600.0,
            preemptible=False,
            checkpoint_seconds=5.0,
            grace_seconds=2.0,
        ),
        accelerator="v100",
        workers=(3, 1),
        attempt=2,
        until=1e9,
        steps_per_second=4.0,
    )
    assert COMMANDS.read(COMMANDS.document_of(start)) == start
