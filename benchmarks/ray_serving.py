"""How well does Fairway work on several nodes, against plain Ray Serve on the same Ray cluster?

- `rows`: what it takes to bring the state rows of 64 workers to four nodes every 10 ms, in CPU time.
- `trivial`: three stages that do nothing, on three nodes, at 1 and at 32 clients at a time. It needs Ray Serve
  (pip install 'fairway[ray-serve]'), and is left out where it is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Annotated

import typer

from benchmarks._ray_rows import rows
from benchmarks._ray_trivial import trivial
from benchmarks._report import Result, show
from benchmarks._serving_live_settings import say

PARTS: dict[str, Callable[[], Iterator[Result]]] = {"rows": rows, "trivial": trivial}


def main(
    destination: Annotated[str | None, typer.Option("--json", help="Write the results here, - for stdout.")] = None,
    only: Annotated[list[str] | None, typer.Option(help=f"One of the parts: {', '.join(PARTS)}.")] = None,
) -> None:
    unknown = set(only or ()) - set(PARTS)
    if unknown:
        raise typer.BadParameter(f"'{unknown.pop()}' given, expected one of {', '.join(PARTS)}", param_hint="--only")
    chosen = [name for name in PARTS if not only or name in only]
    if "trivial" in chosen and (find_spec("ray") is None or find_spec("ray.serve") is None or not find_spec("aiohttp")):
        say("Ray Serve is not installed: nothing is compared with it; pip install 'fairway[ray-serve]'")
        if only:
            raise typer.Exit(2)
        chosen.remove("trivial")
    show("ray_serving", (result for name in chosen for result in PARTS[name]()), destination)


if __name__ == "__main__":
    typer.run(main)
