"""The command `fairway`: what it offers, and how anything that goes wrong is told.

Whatever is wrong with what was given is one line on standard error and exit status 2; commands raise it as `InputError`
or `OSError` and need not care. Nothing heavy is imported before a command that needs it runs.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fairway.cli.decide.allocate import allocate
from fairway.cli.decide.configure import configure
from fairway.cli.decide.place import place
from fairway.cli.decide.policies import policies
from fairway.cli.demo import demo
from fairway.cli.gpus import gpus
from fairway.cli.history import history
from fairway.cli.jobs.cancel import cancel
from fairway.cli.jobs.explain import explain
from fairway.cli.jobs.logs import logs
from fairway.cli.jobs.ls import ls
from fairway.cli.jobs.replay import replay
from fairway.cli.jobs.status import status
from fairway.cli.jobs.submit import SubmitCommand, submit
from fairway.cli.jobs.usage import usage
from fairway.cli.new import new
from fairway.cli.open_run import open_run
from fairway.cli.plan import plan
from fairway.cli.profile import profile
from fairway.cli.reservations import reservations, reserve
from fairway.cli.screens.top import top
from fairway.cli.server.down import down
from fairway.cli.server.serve import serve
from fairway.cli.server.up import up
from fairway.cli.simulate.commands import simulate
from fairway.cli.simulate.compare import compare
from fairway.cli.simulate.reproduce import reproduce
from fairway.cli.simulate.sweep import sweep
from fairway.cli.terminal_text import harmless
from fairway.cli.token import token
from fairway.cli.workers import drain, workers
from fairway.errors import FairwayError, InputError
from fairway.extras import missing

_LONGEST_LINE = 1000


class _Commands(TyperGroup):
    """Turns what commands raise into a line and an exit status; Ctrl-C and a closed pipe are left to Typer."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            raise _failure(error, 2) from None
        except FairwayError as error:
            raise _failure(error, 1) from None
        except ModuleNotFoundError as error:
            line = missing(error)
            if line is None:
                raise
            raise _failure(InputError(line), 2) from None
        except BrokenPipeError:
            raise
        except UnicodeEncodeError as error:
            _drop_output()
            problem = f"standard output cannot show {error.object[error.start]!a} in {error.encoding}"
            raise _failure(InputError(f"{problem}; set PYTHONIOENCODING=utf-8 or use --json FILE"), 2) from None
        except OSError as error:
            _drop_output()
            raise _failure(error, 2) from None


def _failure(error: Exception, status: int) -> typer.Exit:
    line = "".join(
        harmless([" ".join(str(error).splitlines())])
    )  # it may quote what others have written, and at length
    line = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
    typer.echo(f"fairway: {line}", err=True)
    return typer.Exit(status)


def _drop_output() -> None:
    """Let go of output that could not be written, or Python would try once more, and complain, at the very end."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except OSError:  # standard output is not a file of its own, as in tests
        pass


app = typer.Typer(
    name="fairway",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_DECIDE = "Decide and simulate"
app.command(rich_help_panel=_DECIDE)(demo)
app.command(rich_help_panel=_DECIDE)(allocate)
app.command(rich_help_panel=_DECIDE)(configure)
app.command(rich_help_panel=_DECIDE)(place)
app.command(rich_help_panel=_DECIDE)(policies)
app.add_typer(simulate, rich_help_panel=_DECIDE)
app.command(rich_help_panel=_DECIDE)(sweep)
app.command(rich_help_panel=_DECIDE)(compare)
app.command(rich_help_panel=_DECIDE)(plan)
app.command(rich_help_panel=_DECIDE)(reproduce)
app.command(rich_help_panel=_DECIDE)(replay)
app.command("open", rich_help_panel=_DECIDE)(open_run)
app.command(rich_help_panel=_DECIDE)(new)

_SERVE = "Serve models"
app.command(rich_help_panel=_SERVE)(serve)
app.command(rich_help_panel=_SERVE)(profile)

_RUN = "Run jobs"
app.command(rich_help_panel=_RUN)(up)
app.command(rich_help_panel=_RUN)(down)
app.command(rich_help_panel=_RUN, cls=SubmitCommand)(submit)
app.command(rich_help_panel=_RUN)(ls)
app.command(rich_help_panel=_RUN)(status)
app.command(rich_help_panel=_RUN)(logs)
app.command(rich_help_panel=_RUN)(explain)
app.command(rich_help_panel=_RUN)(cancel)
app.command(rich_help_panel=_RUN)(usage)
app.command(rich_help_panel=_RUN)(top)
app.command(rich_help_panel=_RUN)(workers)
app.command(rich_help_panel=_RUN)(drain)
app.command(rich_help_panel=_RUN)(reserve)
app.command(rich_help_panel=_RUN)(reservations)
app.add_typer(history, name="history", rich_help_panel=_RUN)
app.add_typer(gpus, rich_help_panel=_RUN)
app.add_typer(token, rich_help_panel=_RUN)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"fairway {version('fairway')}")
        except PackageNotFoundError:
            typer.echo("fairway, version unknown: it is not installed")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Schedule machine learning on clusters of mixed accelerators."""


if __name__ == "__main__":
    app()
