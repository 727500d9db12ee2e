"""What a failed store says of itself."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy.exc import InvalidRequestError, OperationalError, SQLAlchemyError

from fairway.store.database.writer import said


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OperationalError("SELECT 1", {}, sqlite3.OperationalError("disk I/O\n  error")), "disk I/O error"),
        (InvalidRequestError("it is\nclosed"), "it is closed"),
    ],
)
def test_it_is_what_the_database_said_on_one_line(error: SQLAlchemyError, words: str) -> None:
    assert said(error) == words
