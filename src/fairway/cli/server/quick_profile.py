"""What `fairway serve` does with an application that was never profiled: it measures it quickly, and says so.

A scheduler that knows nothing of how long stages take plans badly until it has seen requests. Each stage runs once for
each sample at a few batch sizes, in processes of their own; `fairway profile` takes its time and measures more. Nothing
is measured where the author has said how long every stage takes, or where there is nothing to measure with.
"""

from __future__ import annotations

import time
from pathlib import Path

import typer

from fairway.errors import FairwayError
from fairway.live.serving.application.definition import Application
from fairway.live.serving.application.measurements import profile_text
from fairway.live.serving.application.profiling import ProfileOptions, Profiler
from fairway.live.serving.application.samples import samples_of
from fairway.report.whole_file import write_whole
from fairway.workflows.stage_class import UNMEASURED_SECONDS

_BATCHES = (1, 4)
_FILE = "profile.yaml"


def quick_profile(target: str, directory: Path, *, threads: int, workers: int) -> Path | None:
    """Measure an application that has no profile, into a file of this directory; None where there is nothing to do."""
    profiler = Profiler(target, ProfileOptions(_BATCHES, (threads,), repeats=1, at_once=workers))
    workflows = profiler.application.workflows
    if not _is_unmeasured(profiler.application):
        return None
    silent = [name for name, served in workflows.items() if served.recording.samples is None]
    if silent:
        typer.echo(
            f"{target} was never profiled, and {silent[0]} has no samples to measure it with: times are guesses until "
            f"requests were seen; 'fairway profile {target} --input FILE' measures it",
        )
        return None
    typer.echo(f"{target} was never profiled; measuring it quickly (--no-profile starts at once)")
    start = time.monotonic()
    try:
        measured = profiler.measure({name: samples_of(served) for name, served in workflows.items()})
    except FairwayError as error:  # whatever is wrong with the application, serving it will say it better
        typer.echo(f"it could not be measured: {error}; times are guesses until requests were seen")
        return None
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = f"Measured quickly by 'fairway serve {target}'; 'fairway profile' measures more."
    path = directory / _FILE
    write_whole(path, profile_text(measured.document(workers=workers, memory_bytes=None), about))
    typer.echo(
        f"measured in {time.monotonic() - start:.1f} s: {path}; 'fairway profile' measures it thoroughly, for --profile"
    )
    return path


def _is_unmeasured(application: Application) -> bool:
    """Whether neither the application nor a profile says of some stage how long it takes."""
    return any(
        stage.fastest_seconds == UNMEASURED_SECONDS
        for served in application.workflows.values()
        for stage in served.workflow.stages
    )
