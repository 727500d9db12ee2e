"""What a client and a worker say to each other: requests as messages, how long a client waits, whom it asks."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fairway.errors import InputError
from fairway.live.serving.clients.client_protocol import (
    ClientRequest,
    Deadline,
    RequestFailedError,
    Site,
    lost,
    pause_after,
)
from fairway.live.serving.seams.transport import WireError
from fairway.live.serving.seams.values import LARGE, Parcel
from fairway.live.serving.simulated.memory import SimulatedValues
from fairway.live.serving.supervise.settings import ServingSettings

PARCEL = Parcel(b"pickled", (b"bytes", "name"))
FIRST = ClientRequest(3, 1, PARCEL)


@pytest.mark.parametrize(
    "request_",
    [
        FIRST,
        FIRST._replace(seconds=2.5, trace="00-1-2-01"),
        FIRST._replace(lost=0),
        FIRST._replace(workflow=0, seconds=3),
    ],
)
def test_a_request_is_the_same_after_its_way(request_: ClientRequest) -> None:
    word, *content = request_.message()
    assert word == ("ask" if request_.lost is None else "ask-again")
    assert ClientRequest.checked(content, workflows=2) == request_


GOOD: list[Any] = [3, 1, tuple(PARCEL), 2.5, "00-1-2-01", 4]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, "3"), (0, True), (1, 2), (1, -1), (1, True), (2, list(PARCEL)), (2, (b"",)), (2, ("", ())), (2, (b"", [])),
        (2, (b"", (3,))), (2, (b"", (), ())), (3, "2.5"), (4, 7), (5, "4"), (5, True),
    ],
)  # fmt: skip
def test_what_no_client_of_ours_would_send_is_refused(place: int, value: Any) -> None:
    assert ClientRequest.checked(GOOD, workflows=2).lost == 4
    with pytest.raises(WireError, match="a request that is none"):
        ClientRequest.checked([*GOOD[:place], value, *GOOD[place + 1 :]], workflows=2)


def test_a_client_waits_until_its_deadline_and_not_a_moment_longer() -> None:
    now = [10.0]
    deadline, endless = Deadline(2.0, lambda: now[0]), Deadline(None, lambda: now[0])
    assert (deadline.left(), endless.left()) == (2.0, None)
    now[0] = 11.5
    assert deadline.left() == 0.5
    for late in (12.0, 99.0):
        now[0] = late
        with pytest.raises(RequestFailedError, match="its time was over before its result was there") as caught:
            deadline.left()
        assert caught.value.code == "late"
    assert endless.left() is None


@pytest.mark.parametrize("seconds", [0, 0.0, -1.0, float("nan")])
def test_a_deadline_that_is_over_is_refused(seconds: float) -> None:
    with pytest.raises(InputError, match=r"deadline: .* s from now given, which is not in the future"):
        Deadline(seconds, lambda: 10.0)


def test_the_more_workers_a_request_has_cost_the_longer_the_pause() -> None:
    assert 0 == pause_after(0) < pause_after(1) < pause_after(2) < 1.0
    assert (lost(10).code, "was lost 10 times" in str(lost(10))) == ("failed", True)


def site(workflows: tuple[str, ...] = ("a", "b"), *, near: tuple[int, ...] = (), **settings: Any) -> Site:
    kept: dict[str, bytes] = {}
    seams = SimpleNamespace(
        values=lambda owner: SimulatedValues(kept, owner), is_near=lambda number: number in near, kept=kept
    )
    here = Path("/run/app")
    return Site.of(
        ServingSettings("app", here, here, **{"workers": 6, "has_planner": False, **settings}),
        workflows, seams, random.Random(1),  # type: ignore[arg-type]
    )  # fmt: skip


def test_the_only_workflow_may_be_left_out_and_no_other_name_is_taken() -> None:
    assert [site().number(name) for name in "ab"] == [0, 1]
    assert site(("only",)).number(None) == 0
    for workflows, name in ((("a", "b"), None), (("a", "b"), "c"), (("only",), "a")):
        with pytest.raises(InputError, match=f"workflow: {name!r} given, expected one of {', '.join(workflows)}"):
            site(workflows).number(name)


def test_all_doors_are_asked_in_any_order_the_near_ones_first() -> None:
    some = site(near=(2, 5))
    orders = [some.some_order() for _ in range(30)]
    assert all(sorted(order) == list(range(6)) for order in orders)
    assert all(set(order[:2]) == {2, 5} for order in orders)
    assert len({tuple(order) for order in orders}) > 10
    assert site(has_planner=True).some_order() == [6]


def test_what_a_client_has_opened_or_waits_for_no_more_is_let_go() -> None:
    some = site()
    kept = some.seams.kept  # type: ignore[attr-defined]
    value = np.zeros(2 * LARGE, np.uint8)
    parcel = some.values.pack(value)
    assert len(kept) == 1
    assert (some.opened(tuple(parcel)) == value).all()
    assert kept == {}
    for word, left in (("reply", 0), ("chunk", 0), ("failed", 1)):
        some.unheard(word, (7, tuple(some.values.pack(value))))
        assert len(kept) == left
        kept.clear()


def test_where_nothing_is_served_a_client_is_told_how(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing is served from here; start it with 'fairway serve'"):
        Site.find(tmp_path)
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(InputError, match="nothing is served from here"):
        Site.find(tmp_path)
