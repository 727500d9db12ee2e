"""While a job runs, the store learns how many steps are left, also without a checkpoint."""

from __future__ import annotations

from pathlib import Path

from tests.live.training.virtual import World


def test_steps_left_fall_while_a_job_runs(tmp_path: Path) -> None:
    with World(tmp_path, "v100=1").running() as world:
        job = world.submit(10_000, throughputs={"v100": 2.0})
        world.run_for(10.0)
        first = world.job(job).steps_left
        world.run_for(10.0)
        second = world.job(job).steps_left
        assert first is not None
        assert second is not None
        assert 10_000 > first > second
        assert first - second >= 10, "two steps a second"
        assert world.job(job).checkpoint_steps_left in {None, 10_000}
