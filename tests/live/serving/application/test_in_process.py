"""Running a workflow in this process, without any server."""

from __future__ import annotations

import asyncio

import pytest

from fairway import InputError, LocalWorkflow, load_application, run_locally
from tests.live.serving import authored

HERE = "tests.live.serving.authored"


@pytest.mark.parametrize("given", [authored.tables, f"{HERE}:tables"])
def test_a_workflow_runs_from_its_function_or_its_name(given: object) -> None:
    assert run_locally(given, number=4) == [3.0, 3.0, 4]  # type: ignore[arg-type]


def test_models_stay_between_requests_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []
    load = authored.Table.cls.load

    def counted(self: authored.Table.cls) -> object:  # type: ignore[name-defined]
        loads.append(self.size)
        return load(self)

    monkeypatch.setattr(authored.Table.cls, "load", counted)
    with LocalWorkflow(f"{HERE}:small") as local:
        assert [local.run(number=number) for number in (1, 2)] == [2.0, 3.0]
        assert asyncio.run(local.run_async(number=3)) == 4.0
    assert loads == [authored.SMALL]


def test_pieces_come_one_by_one() -> None:
    with LocalWorkflow(authored.spell) as local:
        pieces = local.run(text="abc")
        assert next(pieces) == "a"
        assert list(pieces) == ["b", "c"]


def test_it_must_be_clear_which_workflow_is_meant() -> None:
    with pytest.raises(InputError, match=r"has several workflows \(tables, small\); name one"):
        run_locally(f"{HERE}:several", number=1)
    with pytest.raises(InputError, match="7 given, expected a workflow"):
        run_locally(7)  # type: ignore[arg-type]
    assert run_locally(load_application(f"{HERE}:spell").workflows["spell"], text="a") is not None
