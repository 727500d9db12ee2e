"""`fairway demo`: the three decisions at work, with what a plain installation has."""

from __future__ import annotations

import re

from typer.testing import CliRunner

from fairway.cli.main import app


def test_the_demo_shows_three_commands_and_what_comes_of_them() -> None:
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 0, done.output
    shown = re.split(r"^\$ fairway ", done.stdout, flags=re.MULTILINE)[1:]
    assert [part.partition(" --")[0] for part in shown] == ["simulate training", "simulate serving", "simulate serving"]
    for part in shown:
        line, _, answer = part.partition("\n")
        for name in re.findall(r"-[ps] ([a-z-]+)", line):
            assert re.search(rf"^{name}\b.*\d", answer, flags=re.MULTILINE), f"{name} has no row:\n{answer}"
    assert "Next: " in shown[-1]
