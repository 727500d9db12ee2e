"""`fairway token`: who may do what, as an admin decides."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from fairway.cli.given import span_given
from fairway.cli.output import STDOUT, write_json
from fairway.cli.remote import Address, JsonTo, Token, connected

if TYPE_CHECKING:
    from fairway.client.records import Token as MadeToken

token = typer.Typer(
    name="token",
    help="Make, list, replace and revoke tokens, which say who may do what.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


class Role(StrEnum):
    """What a token allows."""

    ADMIN = "admin"
    MEMBER = "member"
    READER = "reader"


@token.command()
def create(
    role: Annotated[
        Role,
        typer.Option(help="admin: everything; member: the jobs of a team; reader: look at everything, change nothing."),
    ] = Role.MEMBER,
    team: Annotated[str | None, typer.Option(metavar="TEAM", help="The team of a member.", show_default=False)] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose it is, for the list.", show_default=False)
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="After which it is worth nothing, as in 30d.", show_default=False),
    ] = None,
    json_to: JsonTo = None,
    address: Address = None,
    as_token: Token = None,
) -> None:
    """Make a token and print it. It is shown this once: Fairway itself keeps only a digest.

    [bold]Examples[/bold]

    fairway token create --role member --team vision --name alice

    fairway token create --role reader --name grafana --expires 90d > grafana.token
    """
    seconds = None if expires is None else span_given("--expires", expires)
    with connected(address, as_token) as client:
        made = client.create_token(role.value, team=team, name=name, expires_seconds=seconds)
    _print_once(made, json_to)


@token.command()
def rotate(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="Its id, as in the list.", show_default=False)],
    grace: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="For how long the old one is still taken; not at all otherwise."),
    ] = None,
    json_to: JsonTo = None,
    address: Address = None,
    as_token: Token = None,
) -> None:
    """Replace a token with a new one that may do the same, and print it. It is shown this once.

    If the old one is in the directory of [bold]fairway up[/bold], the new one takes its place there.

    [bold]Examples[/bold]

    fairway token rotate 1f0c2a9b77d1 --grace 1h
    """
    seconds = 0.0 if grace is None else span_given("--grace", grace)
    with connected(address, as_token) as client:
        made = client.rotate_token(token_id, grace_seconds=seconds)
    _print_once(made, json_to)


def _print_once(made: MadeToken, json_to: str | None) -> None:
    if json_to is not None:
        write_json(made.document, json_to)
    if json_to != STDOUT:
        typer.echo(made.token)
        of_team = f" of team {made.team}" if made.team else ""
        typer.echo(f"token {made.id}, {made.role}{of_team}; it is not shown again", err=True)


@token.command()
def ls(json_to: JsonTo = None, address: Address = None, as_token: Token = None) -> None:
    """List the tokens, without the secrets.

    [bold]Examples[/bold]

    fairway token ls
    """
    with connected(address, as_token) as client:
        found = client.tokens()
    if json_to is not None:
        write_json({"tokens": [one.document for one in found]}, json_to)
    if json_to == STDOUT:
        return
    from rich.table import Table

    from fairway.cli import words

    now = time.time()
    heads = "id", "name", "role", "team", "created", "last used", "expires", "revoked"
    table = Table(*heads, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for one in found:
        moments = [words.moment(at, now) for at in (one.created_at, one.used_at, one.expires_at, one.revoked_at)]
        table.add_row(words.text(one.id, "bold"), words.text(one.name), one.role, words.text(one.team), *moments)
    words.console().print(table)


@token.command()
def revoke(
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="The ids, as in the list.", show_default=False)],
    address: Address = None,
    as_token: Token = None,
) -> None:
    """Let tokens be worth nothing from now on.

    [bold]Examples[/bold]

    fairway token revoke 1f0c2a9b77d1
    """
    with connected(address, as_token) as client:
        for one in ids:
            client.revoke_token(one)
            typer.echo(f"{one} revoked")
