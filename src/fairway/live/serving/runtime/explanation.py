"""What a stage or a model raised, in words that are safe to send and to log.

An exception is the author's object: its `__str__` may raise, end the process, take a gigabyte, or put out characters
that no encoding knows. Whatever it does, the words here are short and can be written anywhere.
"""

from __future__ import annotations

import logging
import traceback
import uuid

_LOG = logging.getLogger(__name__)

_MOST_SAID = 500
_MOST_LOGGED = 20_000
_MOST_LOOKED_AT = 4 * _MOST_SAID


def kind_of(problem: BaseException) -> str:
    """The name of an exception's class."""
    return _plain(type.__getattribute__(type(problem), "__name__"))[:100]


def words_of(problem: BaseException) -> str:
    """What an exception says, in one short line."""
    try:
        said = str(problem)[:_MOST_LOOKED_AT]
    except BaseException as error:  # whatever its author wrote in there must not get any further
        return f"(what it says cannot be read: its __str__ raised {kind_of(error)})"
    return _plain(" ".join(said.split())[:_MOST_SAID])


def explained(what: str, problem: BaseException) -> str:
    """What went wrong in one line, with the name under which the log has all of it."""
    trace = uuid.uuid4().hex[:12]
    said = words_of(problem)
    _LOG.error("%s failed, trace %s\n%s", what, trace, _where(problem, said))
    return f"{what} raised {kind_of(problem)}: {said} (trace {trace}, in the worker's log)"


def _where(problem: BaseException, said: str) -> str:
    """The traceback; the causes of an exception are part of it if they can be read."""
    frames = "".join(traceback.format_tb(problem.__traceback__)[-50:])
    own = f"Traceback (most recent call last):\n{frames}{kind_of(problem)}: {said}"
    if problem.__cause__ is None and problem.__context__ is None:
        return _plain(own)[-_MOST_LOGGED:]
    try:
        return _plain("".join(traceback.format_exception(problem))[-_MOST_LOGGED:])
    except BaseException:  # as above: one of the causes may be hostile, too
        return _plain(own)[-_MOST_LOGGED:]


def _plain(text: str) -> str:
    """The same text, with what no encoding knows written out."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")
