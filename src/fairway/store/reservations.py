"""Reservations: so many workers of some types that are a team's alone from one time to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, insert, select, update

from fairway.errors import InputError
from fairway.store.database.schema import reservations, workers
from fairway.store.errors import UnknownError
from fairway.store.names import checked_name

_OPEN = (
    select(reservations)
    .where(reservations.c.cancelled_at.is_(None), reservations.c.ends_at > bindparam("at"))
    .order_by(reservations.c.number)
)
_COUNTS = select(workers.c.accelerator, func.count()).where(workers.c.lost_at.is_(None)).group_by(workers.c.accelerator)


_LAST = 253_370_764_800.0
"""The end of the year 9998: later times cannot be shown in every zone."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Workers by type that are a team's from `begins_at` to `ends_at`."""

    number: int
    team: str
    workers: Mapping[str, int]
    begins_at: float
    ends_at: float
    created_at: float
    created_by: str
    cancelled_at: float | None = None

    @property
    def id(self) -> str:
        """Its name."""
        return f"reservation-{self.number}"


def open_reservations(connection: Connection, *, at: float) -> list[Reservation]:
    """Those that are neither over nor cancelled, in the order in which they were made."""
    return [Reservation(*row) for row in connection.execute(_OPEN, {"at": at})]


def reserve(
    connection: Connection, team: str, wanted: Mapping[str, int], *, begins_at: float, ends_at: float, at: float,
    by: str,
) -> Reservation:  # fmt: skip
    """Reserve workers; refuses more than there are beside what others have reserved at the same time."""
    checked_name(team, "team")
    if not begins_at < ends_at or ends_at <= at:
        raise InputError("for: the reservation would be over already; let it end later than now")
    if ends_at > _LAST:
        raise InputError("for: the reservation would end after the year 9998; let it end earlier")
    there: dict[str, int] = {row[0]: row[1] for row in connection.execute(_COUNTS)}
    spelled = {name.lower(): name for name in there}
    asked = {spelled.get(name.lower(), name): count for name, count in wanted.items()}
    others = [
        one for one in open_reservations(connection, at=at) if one.ends_at > begins_at and one.begins_at < ends_at
    ]
    for name, count in asked.items():
        if name not in there:
            raise InputError(
                f"accelerators: no accelerator '{name}' in this cluster; known: {', '.join(there) or 'none'}"
            )
        # The most that is reserved at any time within is reserved at its beginning, or when another one begins.
        moments = [begins_at, *(one.begins_at for one in others if one.begins_at > begins_at)]
        taken = max(
            sum(one.workers.get(name, 0) for one in others if one.begins_at <= moment < one.ends_at)
            for moment in moments
        )
        if taken + count > there[name]:
            beside = f", and {taken} of them are reserved by others in that time" if taken else ""
            raise InputError(
                f"accelerators: {count} {name} asked for, but there are {there[name]}{beside}; ask for fewer"
            )
    number = (connection.execute(select(func.max(reservations.c.number))).scalar_one() or 0) + 1
    made = Reservation(number, team, asked, begins_at, ends_at, at, by)
    connection.execute(
        insert(reservations).values(
            number=number, team=team, workers=asked, begins_at=begins_at, ends_at=ends_at, created_at=at, created_by=by
        )
    )
    return made


def cancel_reservation(connection: Connection, name: str, *, at: float) -> Reservation:
    """Let workers be for all again; refuses what is over or was never made."""
    found = next((one for one in open_reservations(connection, at=at) if one.id == name), None)
    if found is None:
        raise UnknownError(f"reservation: no '{name}' that is not over; see the list")
    connection.execute(
        update(reservations).where(reservations.c.number == found.number).values(cancelled_at=at)
    )  # fmt: skip
    return found
