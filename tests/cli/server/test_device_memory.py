"""Memory of accelerators that report none: declared, and used only where they do not say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.cli.server.device_memory import device_memory_of
from fairway.errors import InputError
from fairway.live.backend.accelerators import Accelerator
from fairway.live.training.settings import ControllerSettings


def test_what_a_device_says_itself_is_not_replaced(tmp_path: Path) -> None:
    settings = ControllerSettings(tmp_path, device_memory=device_memory_of("gb10=120GB, l4=1GB"))
    silent, speaking, other = settings.completed(
        [Accelerator("gb10", 0, "GPU-0"), Accelerator("l4", 0, "GPU-1", memory_bytes=5), Accelerator("t4", 0, "GPU-2")]
    )
    assert (silent.memory_bytes, speaking.memory_bytes, other.memory_bytes) == (120 * 10**9, 5, None)


@pytest.mark.parametrize("text", ["gb10", "=5GB", "gb10=much", "gb10=-1GB", "gb10=1GB,"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^--device-memory: '.*' given, expected TYPE=SIZE, as in gb10=120GB$"):
        device_memory_of(text)
    with pytest.raises(InputError, match="'gb10' given twice"):
        device_memory_of("gb10=1GB,gb10=2GB")
