"""The errors that Fairway raises on purpose.

An `InputError` says what was given, what was expected and what to do, in one line; the command line prints that line
and exits with 2. Any other exception that escapes is a defect of Fairway.
"""

from __future__ import annotations


class FairwayError(Exception):
    """Anything that Fairway raises on purpose."""


class InputError(FairwayError, ValueError):
    """Something from outside (a file, an argument, an option) cannot be used as it is."""

    def __init__(self, message: str) -> None:
        # Names from outside may hold line breaks and worse; the message stays one line.
        super().__init__("".join(char if char.isprintable() else ascii(char)[1:-1] for char in message))
