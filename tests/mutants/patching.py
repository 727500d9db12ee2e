"""Puts a mutant into functions that are loaded already, instead of loading everything anew."""

from __future__ import annotations

import gc
import inspect
import types
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.mutants.changes import Mutant, changed_tree

_Key = tuple[str, str, int]


class Functions:
    """The functions of Fairway that this process has loaded, by file, name and line."""

    def __init__(self, source: Path) -> None:
        self._by_code: dict[_Key, list[types.FunctionType]] = defaultdict(list)
        for one in gc.get_objects():
            if type(one) is types.FunctionType and one.__code__.co_filename.startswith(str(source)):
                self._by_code[_key(one.__code__)].append(one)

    def patch(self, mutant: Mutant) -> bool:
        """Make the functions those of the mutant; not if nothing loaded would change, or not all of it could."""
        usual = compile(mutant.text, str(mutant.file), "exec", dont_inherit=True)
        changes = [
            (function, after)
            for before, after in _different(usual, mutated_code(mutant))
            for function in self._by_code.get(_key(before), [])
            if function.__code__ == before
        ]
        if any(function.__code__.co_freevars != after.co_freevars for function, after in changes):
            return False
        for function, after in changes:
            function.__code__ = after
        return bool(changes)


def mutated_code(mutant: Mutant) -> types.CodeType:
    """The module with the change, its lines where they are."""
    return compile(changed_tree(mutant), str(mutant.file), "exec", dont_inherit=True)


def _key(code: types.CodeType) -> _Key:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _different(before: types.CodeType, after: types.CodeType) -> Iterator[tuple[types.CodeType, types.CodeType]]:
    """The functions inside two modules that differ, and the functions inside these."""
    inner = [[one for one in code.co_consts if isinstance(one, types.CodeType)] for code in (before, after)]
    if [_key(one) for one in inner[0]] != [_key(one) for one in inner[1]]:
        return
    for one, other in zip(*inner, strict=True):
        if one != other:
            if one.co_flags & inspect.CO_OPTIMIZED:
                yield one, other
            yield from _different(one, other)
