"""`fairway profile`: measures the stages and models of an application and writes a profile of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairway.cli.output import STDOUT, write_json
from fairway.errors import InputError

if TYPE_CHECKING:
    from fairway.configure.slices.parts import Slice
    from fairway.live.serving.application.measurements import MeasuredApplication
    from fairway.live.serving.application.profiling import Profiler, Progress


def profile(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:WORKFLOW|FILE.yaml", help="The application, or one workflow of it.", show_default=False
        ),
    ],
    batches: Annotated[str, typer.Option(metavar="N,...", help="Batch sizes to measure.")] = "1,2,4,8",
    threads: Annotated[str, typer.Option(metavar="N,...", help="Numbers of threads that a stage may use.")] = "1",
    repeats: Annotated[int, typer.Option(metavar="N", help="How often each input is repeated.")] = 5,
    slices: Annotated[
        str | None,
        typer.Option(
            metavar="PART,...",
            help="Also measure on these parts of a worker, as in [bold]0.25,0.75[/bold], held to them.",
            show_default=False,
        ),
    ] = None,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs",
            help="Also measure each model on the first part beside every other model on the rest of the worker.",
        ),
    ] = False,
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="FILE",
            help="What to measure with: inputs by name in a .json file (or a list of such), or the one input itself.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="A function that returns inputs by name, or many; the workflow's own otherwise.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the profile goes.")] = Path(
        "profile.yaml"
    ),
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Workers of this machine: as many are measured at a time, and simulated; one per core otherwise.",
            show_default=False,
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory of each worker in simulations, as in 256MB; room for all models otherwise.",
            show_default=False,
        ),
    ] = None,
    json_to: Annotated[
        str | None,
        typer.Option("--json", metavar="-|FILE", help="Also print what was measured as JSON.", show_default=False),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Measure how long stages take and what their models need; write a profile that serving and simulations read.

    [bold]Examples[/bold]

    fairway profile documents:read_document

    fairway profile documents:read_document --batches 1,2,4 --threads 1,2 --input page.png

    fairway simulate serving --scenario profile.yaml --rate 5 -s compass -s hash
    """
    from fairway.live.serving.application.measurements import profile_text
    from fairway.live.serving.application.profiling import ProfileOptions, Profiler
    from fairway.quantities import bytes_of
    from fairway.report.whole_file import write_whole

    if input_file is not None and sample is not None:
        raise InputError("--input and --sample both say what to measure with; choose one of them")
    options = ProfileOptions(
        _numbers("--batches", batches), _numbers("--threads", threads), repeats, parts=_parts(slices), pairs=pairs
    )
    first, cores = options.threads[0], _cores()
    count = max(1, cores // first) if workers is None else workers
    if count < 1:
        raise InputError(f"--workers: {count} given, expected a whole number of at least 1")
    options = replace(options, at_once=min(count * first, cores))
    try:
        memory_bytes = None if memory is None else bytes_of(memory)
    except InputError as error:
        raise InputError(f"--memory: {error}") from None
    if not output.resolve().parent.is_dir():
        raise InputError(f"--output: there is no directory '{output.resolve().parent}'; make it, or name another")
    profiler = Profiler(target, options)
    samples = _samples(profiler, input_file, sample)
    with _progress(shown=not quiet) as profiler.progress:
        measured = profiler.measure(samples)
    document = measured.document(workers=count, memory_bytes=memory_bytes)
    # Whoever reads it should know that it is of this machine and not of another.
    about = f"Measured by 'fairway profile {target}' on {cores} cores; seconds are for one batch, bytes for each model."
    write_whole(output, profile_text(document, about))
    if json_to is not None:
        write_json({**document, "details": _details(measured)}, json_to)
    if not quiet:
        _warn(measured)
    if json_to != STDOUT:
        from fairway.cli.profile_table import print_profile

        print_profile(measured, output)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    """Read `1,2,4`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) < 7 for part in parts):
        raise InputError(f"{option}: '{text}' given, expected whole numbers of at least 1, as in 1,2,4")
    return tuple(int(part) for part in parts)


def _parts(text: str | None) -> tuple[Slice, ...]:
    """Read `0.25,0.75`."""
    from fairway.configure.slices.parts import part_of

    try:
        return tuple(dict.fromkeys(part_of(part.strip()) for part in text.split(","))) if text is not None else ()
    except InputError as error:
        raise InputError(f"--slices: {error}") from None


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _samples(profiler: Profiler, file: Path | None, path: str | None) -> dict[str, list[dict[str, Any]]]:
    from fairway.live.serving.application.samples import samples_of

    workflows = profiler.application.workflows
    if len(workflows) > 1 and (file is not None or path is not None):
        option = "--input" if file is not None else "--sample"
        raise InputError(f"{option}: is for one workflow, but there are several ({', '.join(workflows)}); name one")
    return {name: samples_of(served, file=file, path=path) for name, served in workflows.items()}


@contextmanager
def _progress(*, shown: bool) -> Iterator[Progress]:
    """Something to tell progress to: a bar on standard error where that is a terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield lambda _done, _all, _what: None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("")
        yield lambda done, total, what: progress.update(bar, completed=done, total=total, description=escape(what))


def _details(measured: MeasuredApplication) -> Mapping[str, Any]:
    """What the profile has no place for."""
    return {
        name: {"working_bytes": model.working_bytes, "left_bytes": model.left_bytes}
        for name, model in measured.models.items()
    }


def _warn(measured: MeasuredApplication) -> None:
    """Say on standard error what the author may want to know."""
    for name, model in measured.models.items():
        declared = measured.application.models[name].bytes
        if 0 < declared < model.bytes:
            typer.echo(
                f"fairway: warning: model '{name}' needs {model.bytes / 1e6:.1f} MB, more than the "
                f"{declared / 1e6:.1f} MB that it declares; the profile counts",
                err=True,
            )
        if model.left_bytes > max(0.25 * model.bytes, 4e6):
            typer.echo(
                f"fairway: warning: model '{name}' leaves {model.left_bytes / 1e6:.1f} MB behind when it is let go; "
                "close what it holds in unload",
                err=True,
            )
