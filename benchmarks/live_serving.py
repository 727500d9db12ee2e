"""How fast and how well does live serving work, against Ray Serve, against the simulator and against another scheduler?

- `trivial`: three stages that do nothing, at 1 and at 32 clients at a time; Ray Serve has the same three as
  deployments, each in a process, as our three workers are. One process asks each, from asyncio.
- `documents`: real models, of which each of two workers can hold half, with requests at 60 % of what ours can do; Ray
  Serve loads and drops them with `serve.multiplexed`.
- `simulator`: the same requests in the simulator, with the measured profile.
- `schedulers`: the same requests under Compass and under Hash.
- `kills`: workers are killed while clients ask.
- `planning`: what the decisions on a request's way take.
- `in-time`: the rate at which 95 % of short pages are read by a deadline: `fairway`, `compass` and, where it is
  installed, Ray Serve; and the part in time live against simulated.

Everything runs on this machine. Ours and the peer take turns, and both are up all the time; each turn has its ratio.
The first two need Ray Serve (pip install 'fairway[ray-serve]'), and are left out where it is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Annotated

import typer

from benchmarks import _serving_live_compared as compared
from benchmarks._report import Result, show
from benchmarks._serving_live_in_time import in_time
from benchmarks._serving_live_kills import kill_workers
from benchmarks._serving_live_settings import Settings, say

_FOR_RAY = frozenset({"trivial", "documents"})


def kills(settings: Settings) -> Iterator[Result]:
    count = 5 if settings.quick else settings.kills
    say(f"killing {count} workers")
    found = kill_workers(count, settings.seed)
    extra = {"requests": found.requests, "seconds": found.seconds, "slowest_seconds": found.slowest}
    for what, wrong in (
        ("accepted requests without exactly one reply", [*found.unanswered, *found.twice]),
        ("wrong answers", found.wrong),
        ("files left behind", found.files_left),
    ):
        for each in wrong[:10]:
            say(f"{what}: {each}")
        yield Result(f"{what}, {found.kills} kills", "", len(wrong), target=0.0, extra=extra)


PARTS: dict[str, Callable[[Settings], Iterator[Result]]] = {
    "trivial": compared.trivial,
    "documents": compared.documents,
    "simulator": compared.simulator,
    "schedulers": compared.schedulers,
    "kills": kills,
    "planning": compared.planning,
    "in-time": in_time,
}


def main(
    destination: Annotated[str | None, typer.Option("--json", help="Write the results here, - for stdout.")] = None,
    only: Annotated[list[str] | None, typer.Option(help=f"One of the parts: {', '.join(PARTS)}.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each.")] = 5,
    kills: Annotated[int, typer.Option(min=1, help="How often a worker is killed.")] = 100,
    quick: Annotated[bool, typer.Option("--quick", help="Short turns, to see that it runs; few targets.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Other arrivals, and other moments.")] = 0,
) -> None:
    unknown = set(only or ()) - set(PARTS)
    if unknown:
        raise typer.BadParameter(f"'{unknown.pop()}' given, expected one of {', '.join(PARTS)}", param_hint="--only")
    chosen = [name for name in PARTS if not only or name in only]
    if _FOR_RAY & set(chosen) and (find_spec("ray") is None or find_spec("ray.serve") is None):
        say("Ray Serve is not installed: nothing is compared with it; pip install 'fairway[ray-serve]'")
        if only:
            raise typer.Exit(2)
        chosen = [name for name in chosen if name not in _FOR_RAY]
    with Settings(repeats=2 if quick else repeats, kills=kills, quick=quick, seed=seed) as settings:
        show("live_serving", (result for name in chosen for result in PARTS[name](settings)), destination)


if __name__ == "__main__":
    typer.run(main)
