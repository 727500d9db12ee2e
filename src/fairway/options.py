"""Things by name with options: `name[:option,...]`, as in `max-min-fairness:agnostic` or `compass:theta=2`.

Policies and schedulers are small dataclasses, and an option is a field of one: a flag stands for a field that is False
otherwise, `field=value` sets one that holds a word or a number. Of any other class, the options are the parameters.
"""

from __future__ import annotations

import difflib
import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar

from fairway.errors import InputError

T = TypeVar("T")

_LONGEST_WORD = 200
"""Nothing that is known is so long, and to compare long text takes long."""

_NUMBERS = {"int": re.compile(r"\bint\b"), "float": re.compile(r"\bfloat\b")}
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Option:
    """One option: the parameter that it sets, and what the parameter is otherwise (`inspect` knows a word for nothing).

    `annotation` says what it holds where the default does not.
    """

    parameter: str
    default: Any
    annotation: str

    @property
    def name(self) -> str:
        """As it is written."""
        return self.parameter.replace("_", "-")

    @property
    def is_flag(self) -> bool:
        """Whether it is a word alone."""
        return self.default is False

    @property
    def is_required(self) -> bool:
        """Whether nothing can be made without it."""
        return self.default is inspect.Parameter.empty

    @property
    def form(self) -> str:
        """How it is written, as in `agnostic` or `theta=VALUE`."""
        return self.name if self.is_flag else f"{self.name}=VALUE"

    def value(self, text: str, where: str) -> str | float:
        """The value as the parameter holds it: a number where its default is one, the word itself otherwise."""
        expected = self.default
        if expected is True:
            if text not in _TRUTH:
                raise InputError(f"{where}: '{text}' given, expected true or false")
            return _TRUTH[text]
        if isinstance(expected, int) or self._holds("int"):
            if not (text.isascii() and text.isdecimal()):
                raise InputError(f"{where}: '{text}' given, expected a whole number >= 0{self._example()}")
            return int(text)
        if not (isinstance(expected, float) or self._holds("float")):
            return text
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not number >= 0:
            raise InputError(f"{where}: '{text}' given, expected a number >= 0{self._example()}")
        return number

    def _holds(self, kind: str) -> bool:
        return (self.default is None or self.is_required) and bool(_NUMBERS[kind].search(self.annotation))

    def _example(self) -> str:
        is_number = isinstance(self.default, (int, float))
        return f", as in '{self.default:g}'" if is_number else ""


def named(kind: str, text: str, known: Mapping[str, Callable[..., T]]) -> T:
    """The thing that a name with options stands for; `kind` is what it is called in errors, such as "policy"."""
    name, _, rest = text.strip().partition(":")
    if name not in known:
        raise InputError(f"{kind} '{name}' is not known{nearest(name, known)}; known: {', '.join(known)}")
    return known[name](**chosen_options(kind, name, known[name], rest))


def chosen_options(
    kind: str, name: str, make: Callable[..., Any], text: str, besides: Collection[str] = ()
) -> dict[str, Any]:
    """The parameters that the options of a text set; those `besides` are none of its options."""
    options = {option.name: option for option in options_of(make) if option.parameter not in besides}
    chosen: dict[str, Any] = {}
    for part in text.split(",") if text else ():
        word, equals, value = part.strip().partition("=")
        if word not in options:
            listed = ", ".join(sorted(options)) or "none"
            raise InputError(f"{kind} '{name}' has no option '{word}'{nearest(word, options)}; options: {listed}")
        option = options[word]
        if option.is_flag == bool(equals):
            raise InputError(f"{kind} '{name}': '{part.strip()}' given, expected '{option.form}'")
        chosen[option.parameter] = True if option.is_flag else option.value(value, f"{kind} '{name}': {word}")
    missing = [option.form for option in options.values() if option.is_required and option.parameter not in chosen]
    if missing:
        raise InputError(f"{kind} '{name}' needs {', '.join(missing)}; write {name}:{','.join(missing)}")
    return chosen


def options_of(make: Callable[..., Any]) -> list[Option]:
    """The options that a class, or whatever makes a thing, takes."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):  # as of classes that are written in C
        return []
    takes = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [Option(each.name, each.default, str(each.annotation)) for each in parameters if each.kind in takes]


def text_of(part: Any) -> str:
    """The name of a thing with the options that are not as they would be otherwise: what `named` makes it of."""
    name = str(part.name)
    if not is_dataclass(part):
        return name
    given = []
    for field in fields(part):
        value = getattr(part, field.name)
        if field.init and value != field.default:
            word = field.name.replace("_", "-")
            given.append(word if field.default is False else f"{word}={value}")
    return f"{name}:{','.join(given)}" if given else name


def nearest(word: str, known: Iterable[str]) -> str:
    """What the word was probably meant to be, as the end of a sentence; nothing if it is like none."""
    close = difflib.get_close_matches(word, known, n=1) if len(word) <= _LONGEST_WORD else []
    return f", did you mean '{close[0]}'?" if close else ""
