"""Named tuples without the call of their constructor, for what is made at every event of a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    Kind = TypeVar("Kind", bound=tuple[Any, ...])

    def made(kind: type[Kind], fields: tuple[Any, ...]) -> Kind:
        """`made(Send, (worker, message))` is `Send(worker, message)` in half the time; no field may be left out."""
        ...
else:
    made = tuple.__new__
