"""The training script of the examples: however often it is stopped, it ends with the same weights."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "examples" / "train_numpy.py"


def trained(model: str, steps: int, checkpoints: Path) -> list[str]:
    """What it says, trained up to so many steps from the last checkpoint there."""
    environment = {**os.environ, "FAIRWAY_STEPS": str(steps), "FAIRWAY_CHECKPOINT_DIR": str(checkpoints)}
    command = [sys.executable, str(SCRIPT), "--model", model, "--seed", "7"]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.parametrize("model", ["logistic", "mlp"])
def test_training_in_two_parts_gives_what_training_at_once_gives(model: str, tmp_path: Path) -> None:
    at_once = trained(model, 300, tmp_path / "one")
    first, then = trained(model, 120, tmp_path / "two"), trained(model, 300, tmp_path / "two")
    assert then[0] == "goes on after step 120"
    assert at_once[-1].startswith("done after 300 steps, loss 0.")
    assert then[-1] == at_once[-1] != first[-1]
