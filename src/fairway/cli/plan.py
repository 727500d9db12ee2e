"""`fairway plan`: what would happen if, to a live queue or to a trace, simulated on the scheduler's own engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli.output import STDOUT, write_json
from fairway.cli.remote import Address, JsonTo, Token, connected
from fairway.errors import InputError

if TYPE_CHECKING:
    from fairway.experiments.planning import Change, World

_CHANGE = "What to change"
_TRACE = "A trace instead of the live queue"
_PRICE = "TYPE=DOLLARS"


def plan(
    add: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE=COUNT",
            help="More workers, of a type that is there or a new one; repeatable.",
            show_default=False,
            rich_help_panel=_CHANGE,
        ),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE=COUNT", help="Fewer workers.", show_default=False, rich_help_panel=_CHANGE),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(metavar="TEAM|JOB=NUMBER", help="Another weight.", show_default=False, rich_help_panel=_CHANGE),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="POLICY", help="Another policy.", show_default=False, rich_help_panel=_CHANGE)
    ] = None,
    slo_scale: Annotated[
        float | None,
        typer.Option(
            metavar="FACTOR", help="Deadlines so many times as far.", show_default=False, rich_help_panel=_CHANGE
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="A change of its own beside that of the options above, as in 'add a100=8, policy fifo'; repeatable.",
            show_default=False,
            rich_help_panel=_CHANGE,
        ),
    ] = None,
    find: Annotated[
        str | None,
        typer.Option(
            metavar="GOAL",
            help="Search the cheapest workers to add for a goal, as in 'p95 wait < 1h'.",
            show_default=False,
            rich_help_panel=_CHANGE,
        ),
    ] = None,
    types: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE,…",
            help="The types that may be added for the goal; those of the cluster otherwise.",
            show_default=False,
            rich_help_panel=_CHANGE,
        ),
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, max=512, help="At most so many more workers of each.", rich_help_panel=_CHANGE)
    ] = 64,
    price: Annotated[
        list[str] | None,
        typer.Option(
            metavar=_PRICE,
            help="What a worker costs in an hour, for types without a price.",
            show_default=False,
            rich_help_panel=_CHANGE,
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many simulations of each.")] = 5,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many at once; one per core otherwise.", show_default=False)
    ] = None,
    trace: Annotated[
        str | None, typer.Option(metavar="FILE", help="Jobs of a trace.", show_default=False, rich_help_panel=_TRACE)
    ] = None,
    generate: Annotated[
        str | None,
        typer.Option(
            metavar="jobs=N,rate=R,…",
            help="Jobs as [bold]fairway simulate training --generate[/bold] makes them.",
            show_default=False,
            rich_help_panel=_TRACE,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE=COUNT,…|FILE", help="The cluster of a trace.", show_default=False, rich_help_panel=_TRACE
        ),
    ] = None,
    base_policy: Annotated[
        str, typer.Option(metavar="POLICY", help="The policy of a trace before any change.", rich_help_panel=_TRACE)
    ] = "max-min-fairness",
    json_to: JsonTo = None,
    address: Address = None,
    token: Token = None,
) -> None:
    """Say what would happen if: simulate the jobs that wait and run now, as things are and with changes.

    Jobs that will come, and workers that will fail, are not in it. Differences are means over seeds, with their 95 %
    intervals. [bold]--find[/bold] says what the least costly addition is that reaches a goal: one of mean jct, p95 jct,
    mean wait, p95 wait, makespan (times), slo (a share), cost (dollars) and unfinished (jobs).

    [bold]Examples[/bold]

    fairway plan --add a100=8 --price a100=2.5

    fairway plan --change 'remove k80=4' --change 'policy fifo' --change 'weight vision=2'

    fairway plan --find 'p95 wait < 1h' --types v100,p100

    fairway plan --generate jobs=200,rate=6 --cluster v100=8,k80=8 --add v100=4
    """  # fmt: skip
    from fairway.experiments.planning import Goal, cheapest_addition
    from fairway.experiments.planning import plan as planned
    from fairway.experiments.planning.documents import found_document, plan_document
    from fairway.experiments.planning.plan import labels_of
    from fairway.sim.comparison import Pool

    changes = _changes(add, remove, weight, policy, slo_scale, change)
    goal = None if find is None else Goal.parse(find)
    if bool(changes) == (goal is not None):
        raise InputError("expected either changes, as in '--add v100=4', or a goal, as in '--find \"p95 wait < 1h\"'")
    prices = _prices(price or [])
    names = [name for name in (types or "").split(",") if name]
    new = dict.fromkeys([*names, *(name for one in changes for name in one.add)])
    world, outside = _world(trace, generate, cluster, base_policy, list(new), address, token)

    from fairway.cli.first_use import tell_of_compiling
    from fairway.cli.plan_screen import print_found, print_plan, searching
    from fairway.cli.simulate.progress import watching

    tell_of_compiling()
    quiet = json_to == STDOUT
    with Pool(processes) as pool:
        if goal is None:
            with watching(labels_of(changes, seeds), None, shown=not quiet) as watcher:
                made = planned(world, changes, seeds=seeds, prices=prices, pool=pool, watcher=watcher)
            document = plan_document(made)
        else:
            with searching(goal, shown=not quiet) as watcher:
                found = cheapest_addition(
                    world, goal, types=names, most=most, seeds=seeds, prices=prices, pool=pool, watcher=watcher
                )
            document = found_document(found)
    if json_to is not None:
        write_json(document | {"outside": outside}, json_to)
    if not quiet:
        if goal is None:
            print_plan(made, outside)
        else:
            print_found(found, outside)


def _changes(
    add: list[str] | None,
    remove: list[str] | None,
    weight: list[str] | None,
    policy: str | None,
    slo_scale: float | None,
    several: list[str] | None,
) -> list[Change]:
    """The change that the options are, and those that stand for themselves."""
    from fairway.experiments.planning import Change

    parts = [f"{verb} {given}" for verb, all_given in (("add", add), ("remove", remove), ("weight", weight))
             for given in all_given or []]  # fmt: skip
    parts += [f"policy {policy}"] if policy is not None else []
    parts += [f"slo-scale {slo_scale!r}"] if slo_scale is not None else []
    texts = [", ".join(parts)] if parts else []
    found = [Change.parse(text) for text in [*texts, *(several or [])]]
    for number, one in enumerate(found):
        if one in found[:number]:
            raise InputError(f"change: '{one}' given twice; keep one")
    return found


def _prices(given: list[str]) -> dict[str, float]:
    from fairway.magnitudes import FACTORS

    prices: dict[str, float] = {}
    for text in given:
        name, _, number = text.partition("=")
        try:
            prices[name] = FACTORS.above_zero(float(number))
        except InputError as error:
            raise InputError(f"price {name}: {error}") from None
        except ValueError:
            raise InputError(f"price: '{text}' given, expected {_PRICE}, as in a100=2.5 (per hour)") from None
    return prices


def _world(
    trace: str | None,
    generate: str | None,
    cluster: str | None,
    policy: str,
    new: list[str],
    address: str | None,
    token: str | None,
) -> tuple[World, int]:
    """Where the plan begins, and how many jobs are not in it."""
    from fairway.experiments.planning import LiveQueue, Present, TraceWorld

    if trace is None and generate is None:
        if cluster is not None:
            raise InputError("cluster: given without a trace or --generate; the live queue has its own cluster")
        with connected(address, token) as client:
            present = Present.of_document(client.plan_state(new))
        return LiveQueue(present), present.outside
    if trace is not None and generate is not None:
        raise InputError("trace, generate: both given; give one")
    if cluster is None:
        raise InputError("cluster: nothing given, expected the cluster of the trace, as in '--cluster v100=8,k80=8'")
    from fairway.allocate.registry import policy_of
    from fairway.cluster_file import read_cluster
    from fairway.profiles import catalog
    from fairway.sim.submissions import TrainingOptions
    from fairway.sim.workload import Workload
    from fairway.traces import parse_generate

    policy_of(policy)
    options = None if generate is None else parse_generate(generate)
    if options is not None and options.jobs is None:
        raise InputError("generate: no jobs=COUNT given, so that runs never end; add one, as in jobs=200")
    workload = Workload(trace=trace, generator=options)
    workload.read_trace()
    return TraceWorld(workload, catalog.priced(read_cluster(cluster)), policy, TrainingOptions()), 0
