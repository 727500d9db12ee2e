"""`fairway new`: writes a part of one's own, and its test, to begin with.

What it writes works at once: the test passes, and the part can be named wherever one of ours can.
"""

from __future__ import annotations

import keyword
from enum import StrEnum
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from fairway.errors import InputError

_TEMPLATES = Path(__file__).parent / "templates"


class Kind(StrEnum):
    """What can be written."""

    POLICY = "policy"
    PLACER = "placer"
    CONFIGURATOR = "configurator"
    ESTIMATOR = "estimator"
    TRACE = "trace"
    BACKEND = "backend"


_TRY = {
    Kind.POLICY: "fairway simulate training --generate jobs=50,rate=4 --cluster v100=4,k80=4 --policy {part}",
    Kind.PLACER: "fairway simulate serving --rate 2 --requests 200 --scheduler {part}",
    Kind.CONFIGURATOR: "fairway simulate serving --scenario esg-apps --scheduler {part}",
    Kind.ESTIMATOR: "fairway simulate training --generate jobs=50,rate=4 --cluster v100=4,k80=4 "
    "--policy max-min-fairness:space-sharing --profiling 0.2 --estimator {part}",
    Kind.TRACE: "fairway simulate training --trace jobs.csv --format {part} --cluster v100=4 --policy fifo",
    Kind.BACKEND: "fairway up --emulate v100=2 --backend {part}",
}


def new(
    kind: Annotated[Kind, typer.Argument(help="What to write.", show_default=False)],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What to call it, as in [bold]my-policy[/bold].", show_default=False)
    ],
    directory: Annotated[
        Path,
        typer.Option("--directory", "-d", metavar="DIRECTORY", help="Where to write the two files."),
    ] = Path(),
) -> None:
    """Write a policy, placer, configurator, estimator, trace reader or backend of your own, and its test.

    The test passes at once, and the part can be named wherever one of ours can, as module:Class.

    [bold]Examples[/bold]

    fairway new policy my-policy

    fairway new trace our-cluster --directory src
    """
    words = name.strip().lower().replace("_", "-").split("-")
    module = "_".join(words)
    if not module.isidentifier() or not module.isascii() or keyword.iskeyword(module):
        raise InputError(f"'{name}' cannot be the name of a Python module; expected letters, as in my-{kind.value}")
    if _is_taken(module, directory):
        raise InputError(f"'{module}' is the name of a Python module that is there already; choose another name")
    if not directory.is_dir():
        raise InputError(f"{directory}: no such directory; make it first, or leave out --directory")
    class_name = "".join(word.capitalize() for word in words)
    facts = {"module": module, "class_name": class_name, "title": "-".join(words)}
    files = {
        directory / f"{module}.py": _filled(f"{kind.value}.py.txt", facts),
        directory / f"test_{module}.py": _filled(f"{kind.value}_test.py.txt", facts),
    }
    for path in files:
        if path.exists():
            raise InputError(f"{path}: is there already; choose another name, or remove it")
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    written, test = (str(path) for path in files)
    where = "" if directory in {Path(), Path.cwd()} else f", in {directory}"
    typer.echo(f"wrote {written} and {test}")
    typer.echo(f"test it:     python -m pytest {test}")
    typer.echo(f"try it{where}: {_TRY[kind].format(part=f'{module}:{class_name}')}")


def _filled(template: str, facts: dict[str, str]) -> str:
    return Template((_TEMPLATES / template).read_text(encoding="utf-8")).substitute(facts)


def _is_taken(module: str, directory: Path) -> bool:
    """Whether a module of this name is installed, which the new one would hide, or be hidden by."""
    from importlib.util import find_spec

    found = find_spec(module)
    return found is not None and Path(found.origin or "").parent != directory.resolve()
