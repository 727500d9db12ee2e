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
        "--tls-cert",
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
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="A further name by which it may be called, as behind a proxy; may be given several times. This machine's "
        "own names, the address that is asked and those in the certificate always count.",
        show_default=False,
        rich_help_panel=_SERVICE,
    ),
]
AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-origin",
        metavar="https://SITE",
        help="A site whose pages may call it from a browser; may be given several times.",
        show_default=False,
        rich_help_panel=_SERVICE,
    ),
]
