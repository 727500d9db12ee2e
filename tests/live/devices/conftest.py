from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.devices.machine import Machine, machine_in


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return machine_in(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def machine(compiled: Machine, tmp_path: Path) -> Machine:
    return Machine(compiled.library, tmp_path / "gpus")
