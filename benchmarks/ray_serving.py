"""How well does Fairway work on several nodes, against plain Ray Serve on the same Ray cluster?

- `rows`: what it takes to bring the state rows of 64 workers to four nodes every 10 ms, in CPU time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from benchmarks._ray_rows import rows
from benchmarks._report import Result, show

PARTS: dict[str, Callable[[], Iterator[Result]]] = {"rows": rows}


def main(
    destination: Annotated[str | None, typer.Option("--json", help="Write the results here, - for stdout.")] = None,
    only: Annotated[list[str] | None, typer.Option(help=f"One of the parts: {', '.join(PARTS)}.")] = None,
) -> None:
    unknown = set(only or ()) - set(PARTS)
    if unknown:
        raise typer.BadParameter(f"'{unknown.pop()}' given, expected one of {', '.join(PARTS)}", param_hint="--only")
    chosen = [name for name in PARTS if not only or name in only]
    show("ray_serving", (result for name in chosen for result in PARTS[name]()), destination)


if __name__ == "__main__":
    typer.run(main)
