"""Parts by name, whoever wrote them: policies, placers, configurators, estimators, readers of traces and backends.

Wherever one of ours may be named, so may a class of any module, as `module:Class[:option,...]`, and what an installed
package offers under a name of its own (an entry point of the kind's group, as `fairway.policies`). Names of ours go
first. Whatever is found is looked at before it is used: a part has all that its protocol asks for. What the protocol
gives by default, a part need not have: a class with nothing but its verb goes on being one when we ask for more.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from fairway.errors import InputError
from fairway.import_path import cause_of, imported
from fairway.options import chosen_options, nearest

T = TypeVar("T")

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True, slots=True)
class Found:
    """What a name stands for: how it is called in errors, what makes it, and the options that were written with it."""

    name: str
    make: Any
    options: str


@dataclass(frozen=True, slots=True)
class Parts(Generic[T]):
    """The parts of one kind: what one is called, the group of its entry points, what it has to have, and ours.

    Ours are classes, or paths of classes that are imported when needed. `besides` are the parameters that every part
    of the kind is given when it is made, and which are therefore no options.
    """

    noun: str
    group: str
    protocol: type
    ours: Mapping[str, Callable[..., T] | str]
    besides: tuple[str, ...] = ()

    def of(self, given: str | T) -> T:
        """The part that a name with options stands for, or the object itself if it is such a part."""
        if inspect.isclass(given):
            raise InputError(f"{self.noun}: the class {given.__name__} given; give an object of it, {given.__name__}()")
        if not isinstance(given, str):
            return self.checked(given, type(given).__name__)
        found = self.find(given)
        if not callable(found.make):
            return self.checked(found.make, found.name)
        make = self._maker(found)
        if found.name in self.ours:
            return make()
        try:
            part = make()
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"{self.noun} '{found.name}' cannot be made: {cause_of(error)}") from error
        return self.checked(part, found.name)

    def maker(self, text: str) -> Callable[..., T]:
        """What makes the part that a name with options stands for, out of the parameters `besides`."""
        return self._maker(self.find(text))

    def _maker(self, found: Found) -> Callable[..., T]:
        if inspect.isclass(found.make):
            self._refuse(found.name, self._lacks(found.make, methods_only=True))
        elif found.name not in self.ours:  # a function may do anything when it is called, such as os:system
            raise InputError(f"{self.noun} '{found.name}' is a {type(found.make).__name__}, expected a class")
        chosen = chosen_options(self.noun, found.name, found.make, found.options, self.besides)
        return partial(found.make, **chosen) if chosen else cast("Callable[..., T]", found.make)

    def find(self, text: str) -> Found:
        """What a name stands for; nothing of it is made yet."""
        name, _, rest = text.strip().partition(":")
        if name in self.ours:
            return Found(name, self._ours(name), rest)
        installed = self.installed()
        if name in installed:
            return Found(name, self._loaded(installed[name]), rest)
        close = nearest(name, (*self.ours, *installed))
        if not (rest and _MODULE.fullmatch(name)):
            raise InputError(
                f"{self.noun} '{name}' is not known{close}; known: {', '.join((*self.ours, *installed))}; "
                "or a class of yours, as module:Class"
            )
        attribute, _, options = rest.partition(":")
        path = f"{name}:{attribute.strip()}"
        try:
            return Found(path, imported(path), options)
        except InputError as error:
            # A misspelt name of ours with an option looks like the class of a module.
            raise InputError(
                f"{self.noun} {error}" + (f" ('{name}' given{close})" if close else "")
            ) from error.__cause__

    def is_offered(self, text: str) -> bool:
        """Whether a name is one of ours or of an installed package, so that to look it up imports nothing else."""
        name = text.strip().partition(":")[0]
        return name in self.ours or name in self.installed()

    def claims(self, text: str) -> bool:
        """Whether a name stands for a part of this kind, as far as its class tells; an `InputError` if it is broken."""
        name, _, rest = text.strip().partition(":")
        if name in self.ours or name in self.installed():
            return True
        return bool(rest and _MODULE.fullmatch(name)) and not self._lacks(self.find(text).make, methods_only=True)

    def installed(self) -> dict[str, EntryPoint]:
        """What installed packages offer, by name; the names of ours are taken."""
        found = sorted(entry_points(group=self.group), key=lambda each: each.name)
        return {each.name: each for each in found if each.name not in self.ours}

    def everything(self) -> dict[str, Callable[..., T]]:
        """Ours and all that installed packages offer."""
        return {
            **{name: self._ours(name) for name in self.ours},
            **{name: self._loaded(each) for name, each in self.installed().items()},
        }

    def checked(self, part: object, name: str) -> T:
        """The same, if it has all that such a part has to have, and with the defaults of the rest."""
        lacking = self._lacks(part)
        defaults = {member: value for member in lacking if (value := self._default(member)) is not None}
        self._refuse(name, [member for member in lacking if member not in defaults])
        return cast("T", _Completed(part, defaults) if defaults else part)

    def _default(self, member: str) -> Any:
        """What the protocol gives for a part that says nothing about it; None if each part has to say it."""
        declared = inspect.getattr_static(self.protocol, member, None)
        return declared.__get__(object()) if isinstance(declared, property) else None

    def _refuse(self, name: str, lacking: list[str]) -> None:
        if lacking:
            raise InputError(
                f"{self.noun} '{name}' is no {self.noun}: it has no {', '.join(lacking)}; inherit from "
                f"fairway.{self.protocol.__name__}, which says what each is for"
            )

    def _lacks(self, part: object, *, methods_only: bool = False) -> list[str]:
        return [
            name
            for name, is_method in _members(self.protocol).items()
            if (is_method or not methods_only) and not hasattr(part, name)
        ]

    def _ours(self, name: str) -> Callable[..., T]:
        one = self.ours[name]
        return cast("Callable[..., T]", imported(one)) if isinstance(one, str) else one

    def _loaded(self, entry: EntryPoint) -> Any:
        try:
            return entry.load()
        except Exception as error:
            package = f" of package '{entry.dist.name}'" if entry.dist is not None else ""
            raise InputError(f"{self.noun} '{entry.name}'{package} cannot be loaded: {cause_of(error)}") from error


class _Completed:
    """A part with the defaults of its protocol for what it does not say; everything else is the part's own."""

    def __init__(self, part: object, defaults: Mapping[str, Any]) -> None:
        self._part, self._defaults = part, dict(defaults)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._defaults.get(name)
        return getattr(self._part, name) if found is None else found

    def __reduce__(self) -> tuple[Any, ...]:
        return _Completed, (self._part, self._defaults)

    def __repr__(self) -> str:
        return repr(self._part)


def _members(protocol: type) -> dict[str, bool]:
    """What a protocol asks for, and whether it is a method; private names are not part of it."""
    found: dict[str, bool] = {}
    for base in reversed(protocol.__mro__):
        if getattr(base, "_is_protocol", False):
            names = dict.fromkeys(inspect.get_annotations(base), False)
            names |= {name: inspect.isfunction(value) for name, value in vars(base).items()}
            found |= {name: is_method for name, is_method in names.items() if not name.startswith("_")}
    return found
