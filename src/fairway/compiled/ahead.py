"""Compiles all marked functions into one library, when Fairway is built: `python -m fairway.compiled`.

numba compiles each function for the types that its annotations name, as it would at its first call. Around each comes
an entry in C's calling convention that takes numpy arrays apart (`library` says how they are handed over), and a linker
(the system's, or else that of the wheel `ziglang`) makes a shared library of it all. Neither Python's headers nor
numpy's take part, so the library serves every version of Python. It is compiled for the oldest processors of an
architecture that Fairway is used on, so that the same library gives the same digits on every machine.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import os
import pickle
import platform
import shutil
import subprocess
import sys
import tempfile
import typing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import as_dtype

from fairway.compiled import marks
from fairway.compiled.library import (
    COUNT,
    DATA,
    DESCRIPTION,
    DIMENSIONS,
    FLAGS,
    HERE,
    LIBRARY,
    MANIFEST,
    MOST_WORDS,
    RAISED,
    ROW_MAJOR_AND_ALIGNED,
    TYPE_NUMBER,
    digest,
)
from fairway.compiled.signatures import DTYPES, LETTERS, parameters_of

_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_SCALARS = {"d": types.float64, "q": types.int64, "?": types.boolean}
_ITEMS = {"d": types.float64, "q": types.int64, "h": types.int16, "Q": types.uint64, "?": types.boolean}


FORM = 2
"""Of what is kept; to be raised when this module makes something else of the same source."""

KEPT = HERE.parents[2] / ".cache" / "kernels"
"""Where a clone keeps what has been compiled, so that a change of one module compiles that one only."""


def modules() -> list[str]:
    """The modules with compiled functions, by the import of the mark."""
    root = HERE.parent
    found = []
    for path in sorted(root.rglob("*.py")):
        if path.parent != HERE and "from fairway.compiled import" in path.read_text():
            found.append(".".join(["fairway", *path.relative_to(root).with_suffix("").parts]))
    return found


def build(library: Path = LIBRARY, manifest: Path = MANIFEST) -> None:
    """Write the library and its manifest."""
    names = modules()
    sources = {name: _sources_of(name) for name in names}
    with ProcessPoolExecutor(initializer=_begin) as pool:
        parts = list(pool.map(_part, names, sources.values()))
    described = {
        "numba": numba.__version__,
        "machine": platform.machine(),
        "modules": sources,
        "functions": {name: each for part in parts for name, each in part.functions.items()},
    }
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory) / "kernels.so"
        _link([code for part in parts for code in part.objects], made, Path(directory))
        manifest.unlink(missing_ok=True)  # a library without one is not used
        beside = library.with_name(library.name + ".new")  # the old one may be in use
        shutil.copyfile(made, beside)
        beside.replace(library)
        manifest.write_text(json.dumps(described, indent=1, sort_keys=True) + "\n")


@dataclass(frozen=True, slots=True)
class _Part:
    """What was made of one module."""

    functions: dict[str, dict[str, Any]]
    objects: list[bytes]


def _begin() -> None:
    marks.keeps[0] = False


def _part(module: str, sources: dict[str, str]) -> _Part:
    """The functions of a module, compiled; as kept from the last time, if nothing has changed."""
    made_of = json.dumps([FORM, sources, numba.__version__, os.environ.get("NUMBA_CPU_NAME")])
    kept = KEPT / f"{module}-{hashlib.blake2b(made_of.encode(), digest_size=12).hexdigest()}"
    if kept.exists():
        part: _Part = pickle.loads(kept.read_bytes())
        return part
    importlib.import_module(module)
    entries = [
        _Entry(name, function, dispatcher)
        for name, (function, dispatcher) in sorted(marks.marked.items())
        if function.__module__ == module
    ]
    part = _Part({entry.name: entry.described() for entry in entries}, [entry.machine_code() for entry in entries])
    if KEPT.parent.parent.joinpath("pyproject.toml").exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        beside = kept.with_name(f"{kept.name}.{os.getpid()}")
        beside.write_bytes(pickle.dumps(part))
        beside.replace(kept)
    return part


class _Entry:
    """The way into one compiled function."""

    def __init__(self, name: str, function: Callable[..., Any], dispatcher: Any) -> None:
        self.name = name
        self.symbol = "fairway_" + name.removeprefix("fairway.").replace(".", "_")
        self.kinds = parameters_of(function)
        self.releases_gil = bool(dispatcher.targetoptions.get("nogil"))
        arguments = tuple(_type(kind, hint) for kind, hint in zip(self.kinds, _hints(function), strict=True))
        compiled = _compiled(dispatcher, arguments)
        self.is_tuple = isinstance(compiled.signature.return_type, types.BaseTuple)
        if any(isinstance(each, types.Array) and each.layout != "C" for each in _parts(compiled.signature.return_type)):
            compiled = _compiled(_in_row_major_order(dispatcher, len(arguments), compiled), arguments)
        self.compiled = compiled
        self.results = _parts(compiled.signature.return_type)

    def described(self) -> dict[str, Any]:
        """What `library` has to know to call it."""
        return {
            "symbol": self.symbol,
            "takes": self.kinds,
            "returns": [_letters(each) for each in self.results],
            "is_tuple": self.is_tuple,
            "releases_gil": self.releases_gil,
        }

    def machine_code(self) -> bytes:
        """The object file with the function and its entry."""
        body = llvm.parse_assembly(str(self.compiled.library._final_module))
        body.link_in(llvm.parse_assembly(str(self._module())))
        for function in body.functions:
            if not function.is_declaration and function.name != self.symbol:
                function.linkage = "internal"
        for variable in body.global_variables:
            if not variable.is_declaration:
                variable.linkage = "internal"
        target = llvm.Target.from_triple(body.triple)
        machine = target.create_target_machine(
            cpu=os.environ["NUMBA_CPU_NAME"], features="", opt=3, reloc="pic", codemodel="default"
        )
        passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
        manager = passes.getModulePassManager()
        manager.add_global_dead_code_eliminate_pass()
        manager.run(body, passes)
        return bytes(machine.emit_object(body))

    def _module(self) -> ir.Module:
        """Takes apart what `library` hands over, calls the function, and writes down what it returns."""
        context, signature = self.compiled.target_context, self.compiled.signature
        module = context.create_module("entry")
        flat = [kind for each in self.kinds for kind in (each if isinstance(each, list) else [each])]
        answered = 1 + sum(2 + each.ndim if isinstance(each, types.Array) else 1 for each in self.results)
        if max(len(flat), answered) > MOST_WORDS:
            raise TypeError(f"{self.name}: {len(flat)} words given, {answered} answered, expected {MOST_WORDS} at most")
        pointer = _I8.as_pointer()
        entry = ir.Function(module, ir.FunctionType(_I64, [pointer, pointer]), name=self.symbol)
        ndarray = ir.GlobalVariable(module, pointer, name="fairway_ndarray")
        builder = ir.IRBuilder(entry.append_basic_block("entry"))
        expected = builder.load(ndarray)
        values = []
        for number, kind in enumerate(flat):
            wanted = ir.DoubleType() if kind == "d" else _I64 if kind in _SCALARS else pointer
            place = builder.gep(entry.args[0], [_I64(8 * number)])
            value = builder.load(builder.bitcast(place, wanted.as_pointer()))
            if kind == "?":
                values.append(
                    context.get_value_as_argument(builder, types.boolean, builder.icmp_signed("!=", value, _I64(0)))
                )
            elif kind in _SCALARS:
                values.append(value)
            else:
                values.append(_array(context, builder, value, kind, expected, number + 1))
        arguments = self._grouped(context, builder, values, signature.args)
        callee = context.declare_function(module, self.compiled.fndesc)
        status, result = context.call_conv.call_function(
            builder, callee, signature.return_type, signature.args, arguments
        )
        with builder.if_then(status.is_error):
            _Answer(builder, entry.args[-1]).write(builder.ptrtoint(status.excinfoptr, _I64))
            builder.ret(_I64(RAISED))
        answer = _Answer(builder, entry.args[-1])
        answer.write(_I64(0))
        parts = [result] if not self.is_tuple else cgutils.unpack_tuple(builder, result, len(self.results))
        for each, part in zip(self.results, parts, strict=False):
            if isinstance(each, types.Array):
                array = context.make_array(each)(context, builder, part)
                answer.write(builder.ptrtoint(array.meminfo, _I64))
                answer.write(builder.ptrtoint(array.data, _I64))
                for length in cgutils.unpack_tuple(builder, array.shape, each.ndim):
                    answer.write(length)
            else:
                answer.write(
                    part
                    if isinstance(part.type, ir.DoubleType)
                    else builder.zext(part, _I64)
                    if part.type.width < 64
                    else part
                )
        builder.ret(_I64(0))
        return module

    def _grouped(self, context: Any, builder: Any, values: list[Any], expected: Sequence[Any]) -> list[Any]:
        """One value for each parameter: the members of a named tuple come together again."""
        grouped, left = [], iter(values)
        for kind, each in zip(self.kinds, expected, strict=True):
            if isinstance(kind, list):
                grouped.append(context.make_tuple(builder, each, [next(left) for _ in kind]))
            else:
                grouped.append(next(left))
        return grouped


class _Answer:
    """Writes words one after another to where the caller wants the answer."""

    def __init__(self, builder: Any, at: Any) -> None:
        self._builder, self._at, self._offset = builder, at, 0

    def write(self, value: Any) -> None:
        """Write the next word."""
        place = self._builder.gep(self._at, [_I64(self._offset)])
        self._builder.store(value, self._builder.bitcast(place, value.type.as_pointer()))
        self._offset += 8


def _array(context: Any, builder: Any, given: Any, kind: str, ndarray: Any, number: int) -> Any:
    """The array as compiled code knows it, from the fields of numpy's; its number is answered where it is another."""

    def field(at: Any, offset: int, wanted: Any) -> Any:
        return builder.load(builder.bitcast(builder.gep(at, [_I64(offset)]), wanted.as_pointer()))

    def refused_unless(right: Any) -> None:
        with builder.if_then(builder.not_(right), likely=False):
            builder.ret(_I64(number))

    pointer = _I8.as_pointer()
    dimensions, dtype = int(kind[:-1]), DTYPES[kind[-1]]
    refused_unless(builder.icmp_unsigned("==", field(given, 8, pointer), ndarray))
    refused_unless(builder.icmp_signed("==", field(given, COUNT, _I32), _I32(dimensions)))
    in_order = builder.and_(field(given, FLAGS, _I32), _I32(ROW_MAJOR_AND_ALIGNED))
    refused_unless(builder.icmp_signed("==", in_order, _I32(ROW_MAJOR_AND_ALIGNED)))
    type_number = field(field(given, DESCRIPTION, pointer), TYPE_NUMBER, _I32)
    refused_unless(builder.icmp_signed("==", type_number, _I32(dtype.num)))
    array_type = types.Array(_ITEMS[kind[-1]], dimensions, "C")
    lengths = field(given, DIMENSIONS, pointer)
    shape = [field(lengths, 8 * number, _I64) for number in range(dimensions)]
    strides = [_I64(dtype.itemsize)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    made = context.make_array(array_type)(context, builder)
    data = field(given, DATA, pointer)
    populate_array(
        made,
        data=builder.bitcast(data, made.data.type),
        shape=shape,
        strides=strides,
        itemsize=_I64(dtype.itemsize),
        meminfo=None,
    )
    return made._getvalue()


def _compiled(dispatcher: Any, arguments: tuple[Any, ...]) -> Any:
    dispatcher.compile(arguments)
    return dispatcher.overloads[arguments]


def _in_row_major_order(dispatcher: Any, count: int, compiled: Any) -> Any:
    """The same function, with all arrays that it returns in row-major order."""
    names = ", ".join(f"a{number}" for number in range(count))
    parts = _parts(compiled.signature.return_type)
    ordered = [
        f"ordered({value})" if isinstance(each, types.Array) and each.layout != "C" else value
        for each, value in zip(parts, [f"r[{number}]" for number in range(len(parts))], strict=True)
    ]
    result = f"({', '.join(ordered)},)" if isinstance(compiled.signature.return_type, types.BaseTuple) else "ordered(r)"
    scope: dict[str, Any] = {"function": dispatcher, "ordered": np.ascontiguousarray}
    exec(f"def entry({names}):\n    r = function({names})\n    return {result}\n", scope)
    return njit(nogil=True)(scope["entry"])


def _parts(returned: Any) -> list[Any]:
    if hasattr(returned, "types"):  # a tuple
        return list(returned.types)
    return [] if returned is types.none else [returned]


def _letters(result: Any) -> str:
    if isinstance(result, types.Array):
        return f"{result.ndim}{_letter(result.dtype)}"
    return {types.float64: "d", types.int64: "q", types.uint64: "q", types.boolean: "?"}[result]


def _letter(item: Any) -> str:
    return LETTERS[as_dtype(item)]


def _type(kind: str | list[str], hint: Any) -> Any:
    if isinstance(kind, list):
        return types.NamedTuple([_type(each, None) for each in kind], hint)
    if kind in _SCALARS:
        return _SCALARS[kind]
    return types.Array(_ITEMS[kind[-1]], int(kind[:-1]), "C")


def _hints(function: Callable[..., Any]) -> list[Any]:
    hints = typing.get_type_hints(function)
    return [hint for name, hint in hints.items() if name != "return"]


def _sources_of(module: str) -> dict[str, str]:
    """The files that the functions of a module were made from: its own, and those from which it takes names."""
    root = HERE.parent
    own = root.joinpath(*module.split(".")[1:]).with_suffix(".py")
    tree = ast.parse(own.read_text())
    used = {
        node.id
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        and any("compiled" in ast.dump(each) for each in function.decorator_list)
        for part in function.body
        for node in ast.walk(part)
        if isinstance(node, ast.Name)
    }
    files = [own]
    for node in ast.walk(tree):
        ours = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairway.")
        if isinstance(node, ast.ImportFrom) and ours and used & {alias.asname or alias.name for alias in node.names}:
            path = root.joinpath(*(node.module or "").split(".")[1:])
            files += [each for each in (path.with_suffix(".py"), path / "__init__.py") if each.exists()]
    return {str(path.relative_to(root)): digest(path) for path in files}


def _link(objects: list[bytes], library: Path, directory: Path) -> None:
    files = []
    for number, code in enumerate(objects):
        files.append(directory / f"{number}.o")
        files[-1].write_bytes(code)
    command = [*_compiler(), "-O2", "-shared", "-fPIC", "-s", "-o", str(library)]
    files += sorted(HERE.glob("*.c"))
    done = subprocess.run([*command, *map(str, files), "-lm"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:2])} made no library: {done.stderr[-2000:]}")


def _compiler() -> list[str]:
    """The C compiler of the machine, or that of the wheel `ziglang`."""
    asked = os.environ.get("CC")
    if asked:
        return asked.split()
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    return [sys.executable, "-m", "ziglang", "cc"]
