"""How well does Fairway work on several nodes, against plain Ray Serve on the same Ray cluster?

- `rows`: what it takes to bring the state rows of 64 workers to four nodes every 10 ms, in CPU time.
- `trivial`: three stages that do nothing, on three nodes, at 1 and at 32 clients at a time.
- `documents`: real models on three nodes, of which each worker can hold half: the latency, and the rate that is held.
- `kills`: a node is killed under load, again and again.

Two of them need Ray Serve (pip install 'fairway[ray-serve]'), and are left out where it is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Annotated, NamedTuple

import typer

from benchmarks._ray_documents import documents
from benchmarks._ray_rows import rows
from benchmarks._ray_serving_kills import kills as kill_nodes
from benchmarks._ray_trivial import trivial
from benchmarks._report import Result, show
from benchmarks._serving_live_settings import say


class Settings(NamedTuple):
    """What the command line asks for."""

    repeats: int
    kills: int
    quick: bool
    seed: int


PARTS: dict[str, Callable[[Settings], Iterator[Result]]] = {
    "rows": lambda _: rows(),
    "trivial": lambda settings: trivial(1.0 if settings.quick else 3.0, settings.repeats),
    "documents": lambda settings: documents(settings.quick, settings.seed, settings.repeats),
    "kills": lambda settings: kill_nodes(3 if settings.quick else settings.kills, settings.seed),
}
_FOR_RAY_SERVE = frozenset({"trivial", "documents"})


def main(
    destination: Annotated[str | None, typer.Option("--json", help="Write the results here, - for stdout.")] = None,
    only: Annotated[list[str] | None, typer.Option(help=f"One of the parts: {', '.join(PARTS)}.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each.")] = 5,
    kills: Annotated[int, typer.Option(min=1, help="How often a node is killed.")] = 20,
    quick: Annotated[bool, typer.Option("--quick", help="Short turns, to see that it runs; few targets.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Other arrivals, and other moments.")] = 0,
) -> None:
    unknown = set(only or ()) - set(PARTS)
    if unknown:
        raise typer.BadParameter(f"'{unknown.pop()}' given, expected one of {', '.join(PARTS)}", param_hint="--only")
    chosen = [name for name in PARTS if not only or name in only]
    has_serve = all(find_spec(name) is not None for name in ("ray", "aiohttp")) and find_spec("ray.serve") is not None
    if _FOR_RAY_SERVE & set(chosen) and not has_serve:
        say("Ray Serve is not installed: nothing is compared with it; pip install 'fairway[ray-serve]'")
        if only:
            raise typer.Exit(2)
        chosen = [name for name in chosen if name not in _FOR_RAY_SERVE]
    settings = Settings(2 if quick else repeats, kills, quick, seed)
    show("ray_serving", (result for name in chosen for result in PARTS[name](settings)), destination)


if __name__ == "__main__":
    typer.run(main)
