"""Finds things by import path, `module:name`, as people write them in commands and files."""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from fairway.errors import InputError
from fairway.options import nearest

_NAMES_SHOWN = 8


def imported(path: str) -> Any:
    """What `module:name` stands for, or the module itself without a name; one line says what is wrong with it."""
    module_name, _, name = path.partition(":")
    module = _module(module_name, path)
    found: Any = module
    for part in name.split(".") if name else ():
        if not hasattr(found, part):
            known = [known for known in dir(found) if not known.startswith("_")]
            some = ", ".join(known[:_NAMES_SHOWN]) + (", …" if len(known) > _NAMES_SHOWN else "")
            hint = nearest(part, known) or (f"; it has {some}" if known else "; it is empty")
            raise InputError(f"{path}: '{module_name}' has no '{name}'{hint}")
        found = getattr(found, part)
    return found


def _module(name: str, path: str) -> ModuleType:
    if not name or name.endswith(".py") or "/" in name or not all(part.isidentifier() for part in name.split(".")):
        as_module = name.removesuffix(".py").strip("./").replace("/", ".")
        hint = (
            f", as in '{as_module}:{path.partition(':')[2] or 'name'}'"
            if all(part.isidentifier() for part in as_module.split("."))
            else ""
        )
        raise InputError(f"{path}: not an import path; expected module:name{hint}")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:  # a command that is installed does not look where it is started
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(f"{path}: no module '{error.name}'; start where it lies, or install it") from None
        raise InputError(f"{path}: '{name}' cannot be imported: {cause_of(error)}") from error
    except Exception as error:
        raise InputError(f"{path}: '{name}' cannot be imported: {cause_of(error)}") from error


def cause_of(error: Exception) -> str:
    """The error, and where it was raised, in one line."""
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({error.filename}, line {error.lineno})"
    text = error.args[0] if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{text} ({last.filename}, line {last.lineno})"
