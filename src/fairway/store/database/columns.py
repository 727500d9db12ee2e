"""The kinds of columns: text that every database takes, whole numbers, and JSON.

JSON stands as text, so that both databases hold the same characters and nothing is lost on the way (PostgreSQL's own
types know neither NUL nor, as `jsonb`, the order of names).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import BigInteger, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from fairway.errors import InputError
from fairway.store.states import JobState

_LARGEST = 2**63 - 1


class Whole(TypeDecorator[int]):
    """Whole numbers of 64 bits. A larger one is in no row, so a query for it may as well look for the largest."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[int]:
        """SQLite keeps a table by its key only if that is an INTEGER, which has 64 bits there."""
        return dialect.type_descriptor(Integer() if dialect.name == "sqlite" else BigInteger())

    def process_bind_param(self, value: int | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """What is stored for a number."""
        return None if value is None else max(-_LARGEST, min(int(value), _LARGEST))


class Words(TypeDecorator[str]):
    """Text. PostgreSQL takes no NUL and no database takes half a character, so both become U+FFFD.

    Names are checked before they are stored (`names`); this is for sentences, and for names that are only looked for.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """What is stored for a text."""
        if value is None or (value.isascii() and "\0" not in value):
            return value
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


class Json(TypeDecorator[Any]):
    """Anything that JSON can say, but for numbers that are not finite."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:  # noqa: ARG002
        """What is stored for a value."""
        return json_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002
        """The value that was stored."""
        return None if value is None else json.loads(value)


class State(TypeDecorator[JobState]):
    """The state of a job, by its name."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: JobState | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """What is stored for a state."""
        return None if value is None else value.value

    def process_result_value(self, value: str | None, dialect: Dialect) -> JobState | None:  # noqa: ARG002
        """The state that was stored."""
        return None if value is None else JobState(value)


def json_text(value: Any, *, in_order: bool = False) -> str:
    """A value as JSON in ASCII; `in_order` of their names, equal values have the same text."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"), sort_keys=in_order, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be written as JSON: {error}; use objects, lists, text and finite numbers") from None


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} given")
