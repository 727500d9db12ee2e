"""Values in files in memory, beyond what all values must do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairway.live.serving.local.shared_memory import SharedMemoryValues, clear_after_clients
from fairway.live.serving.seams.values import client_owner


def test_what_cannot_be_packed_leaves_no_file(tmp_path: Path) -> None:
    values = SharedMemoryValues(tmp_path, "w0-0-")
    with pytest.raises((AttributeError, TypeError)):
        values.pack([np.zeros(100_000), lambda: 0])
    assert list(tmp_path.iterdir()) == []


def test_where_there_is_no_room_a_value_goes_with_the_message_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> int:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "write", full)
    values = SharedMemoryValues(tmp_path, "w0-0-")
    parcel = values.pack(np.arange(100_000))
    assert parcel.names == ()
    assert np.array_equal(values.open(parcel).value(), np.arange(100_000))
    assert list(tmp_path.iterdir()) == []


def test_a_parcel_of_which_one_file_is_gone_is_not_there(tmp_path: Path) -> None:
    values = SharedMemoryValues(tmp_path, "w0-0-")
    parcel = values.pack([np.zeros(100_000), np.ones(100_000)])
    assert len(parcel.names) == 2
    assert values.is_there(parcel)
    (tmp_path / parcel.names[1]).unlink()
    assert not values.is_there(parcel)


def test_files_of_clients_go_when_their_process_is_gone(tmp_path: Path) -> None:
    gone = next(pid for pid in range(4_000_000, 5_000_000) if not Path(f"/proc/{pid}").exists())
    kept = [SharedMemoryValues(tmp_path, client_owner(pid, "a")).pack(np.zeros(9999)) for pid in (os.getpid(), gone)]
    clear_after_clients(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == list(kept[0].names)
