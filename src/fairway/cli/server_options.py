"""Options that every command which serves over HTTP has: where it listens, and with which certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_SERVICE = "The service"

Host = Annotated[str, typer.Option(metavar="ADDRESS", help="Where it listens.", rich_help_panel=_SERVICE)]
Port = Annotated[
    int, typer.Option(min=0, max=65535, metavar="N", help="0 for any that is free.", rich_help_panel=_SERVICE)
]
Certificate = Annotated[
    Path | None,
    typer.Option(
        "--tls-certificate",
        metavar="FILE.pem",
        help="Speak TLS with this certificate.",
        show_default=False,
        rich_help_panel=_SERVICE,
    ),
]
Key = Annotated[
    Path | None,
    typer.Option(
        "--tls-key", metavar="FILE.pem", help="The certificate's key.", show_default=False, rich_help_panel=_SERVICE
    ),
]
PlainText = Annotated[
    bool,
    typer.Option(
        "--plain-text",
        help="Let other machines in without TLS, as behind a proxy that has it.",
        rich_help_panel=_SERVICE,
    ),
]
