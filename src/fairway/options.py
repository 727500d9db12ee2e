"""Things by name with options: `name[:option,...]`, as in `max-min-fairness:agnostic` or `compass:theta=2`.

Policies and schedulers are small dataclasses, and an option is a field of one: a flag stands for a field that is False
otherwise, `field=value` sets one that holds a word or a number.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields
from typing import Any, TypeVar

from fairway.errors import InputError

T = TypeVar("T")

_LONGEST_WORD = 200
"""Nothing that is known is so long, and to compare long text takes long."""


def named(kind: str, text: str, known: Mapping[str, Callable[..., T]]) -> T:
    """The thing that a name with options stands for; `kind` is what it is called in errors, such as "policy"."""
    name, _, rest = text.strip().partition(":")
    if name not in known:
        raise InputError(f"{kind} '{name}' is not known{nearest(name, known)}; known: {', '.join(known)}")
    options: dict[str, Field[Any]] = {field.name.replace("_", "-"): field for field in fields(known[name])}  # type: ignore[arg-type]
    chosen: dict[str, Any] = {}
    for part in rest.split(",") if rest else ():
        option, equals, value = part.strip().partition("=")
        if option not in options:
            listed = ", ".join(sorted(options)) or "none"
            raise InputError(f"{kind} '{name}' has no option '{option}'{nearest(option, options)}; options: {listed}")
        is_flag = options[option].default is False
        if is_flag == bool(equals):
            form = option if is_flag else f"{option}=VALUE"
            raise InputError(f"{kind} '{name}': '{part.strip()}' given, expected '{form}'")
        chosen[options[option].name] = True if is_flag else _value(value, options[option], f"{kind} '{name}': {option}")
    return known[name](**chosen)


def nearest(word: str, known: Iterable[str]) -> str:
    """What the word was probably meant to be, as the end of a sentence; nothing if it is like none."""
    close = difflib.get_close_matches(word, known, n=1) if len(word) <= _LONGEST_WORD else []
    return f", did you mean '{close[0]}'?" if close else ""


def _value(text: str, option: Field[Any], where: str) -> str | float:
    """The value as the field holds it: numbers where its default is one, the word itself otherwise."""
    if isinstance(option.default, int):
        if not (text.isascii() and text.isdecimal()):
            raise InputError(f"{where}: '{text}' given, expected a whole number >= 0, as in '{option.default}'")
        return int(text)
    if not isinstance(option.default, float):
        return text
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number >= 0:
        raise InputError(f"{where}: '{text}' given, expected a number >= 0, as in '{option.default:g}'")
    return number
