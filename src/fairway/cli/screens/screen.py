"""Shows something again and again, until Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from fairway.cli.words import console
from fairway.client.errors import ServiceError


def show_again(look: Callable[[], RenderableType], seconds: float, *, whole_screen: bool = False) -> None:
    """Look every so many seconds; a server that is away for a while is said to be, and looked for again."""
    first = look()  # what is wrong from the start is an error like any other
    try:
        with Live(first, console=console(), auto_refresh=False, screen=whole_screen) as live:
            while True:
                time.sleep(seconds)
                try:
                    shown = look()
                except ServiceError as error:
                    if error.status is not None and error.status < 500:
                        raise
                    shown = Text(str(error), style="red")
                live.update(shown, refresh=True)
    except KeyboardInterrupt:
        pass
