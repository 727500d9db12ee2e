"""From a description and a grant to a command."""

from __future__ import annotations

from fairway.engine.training_messages import Grant
from fairway.live.job_spec import parse_job_spec
from fairway.live.local.agent_messages import NAMES, Start, read_command
from fairway.live.local.granted import start_of


def test_a_grant_becomes_a_command_that_an_agent_reads_back() -> None:
    spec = parse_job_spec(
        "run: [python, train.py]\nresources: {accelerators: V100:2}\nsteps: 100\npreemptible: false\n"
        "checkpoint: {interval: 10m, seconds: 5}\ngrace: 2s\nenvs: {A: 1}\nworkdir: /tmp",
        "job.yaml",
    )
    grant = Grant(7, ("train",), "v100", (3, 1), until=360.0)
    start = start_of(spec, "train", grant, attempt=2, until=1e9, steps_per_second=4.0)
    assert start == Start(
        lease=7,
        job="train",
        run=["python", "train.py"],
        accelerator="v100",
        workers=[3, 1],
        attempt=2,
        workdir="/tmp",
        envs={"A": "1"},
        steps=100,
        steps_per_second=4.0,
        checkpoint_every_seconds=600.0,
        until=1e9,
        preemptible=False,
        checkpoint_seconds=5.0,
        grace_seconds=2.0,
    )
    fields = {name: getattr(start, name) for name in Start.__dataclass_fields__}
    assert read_command({"id": 1, "command": NAMES[Start], **fields}) == start
