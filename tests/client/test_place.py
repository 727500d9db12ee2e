"""Where a client finds the server, and to whom it shows which token."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairway.client.place import DEFAULT_ADDRESS, Place, checked_address, on_this_machine
from fairway.errors import InputError


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"FAIRWAY_HOME": str(tmp_path)}


def test_without_anything_it_is_the_default_address_at_which_nobody_is_expected(home: dict[str, str]) -> None:
    assert Place.find(environment=home) == Place(DEFAULT_ADDRESS, None, expected=False)


def test_the_files_of_fairway_up_are_found(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "address").write_text("http://127.0.0.1:9001\n")
    (tmp_path / "token").write_text("fairway_file\n")
    assert Place.find(environment=home) == Place("http://127.0.0.1:9001", "fairway_file")


def test_the_environment_goes_before_the_files_and_arguments_before_it(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "address").write_text("http://127.0.0.1:9001\n")
    (tmp_path / "token").write_text("fairway_file\n")
    environment = {**home, "FAIRWAY_ADDRESS": "https://fairway.example", "FAIRWAY_TOKEN": "fairway_env"}
    assert Place.find(environment=environment) == Place("https://fairway.example", "fairway_env")
    found = Place.find("http://localhost:1", "fairway_argument", environment)
    assert found == Place("http://localhost:1", "fairway_argument")


def test_the_token_of_this_machine_is_not_shown_to_strangers(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "address").write_text("https://ours.example:8642\n")
    (tmp_path / "token").write_text("fairway_file\n")
    assert Place.find("https://theirs.example", environment=home).token is None
    assert Place.find("https://ours.example:8642/", environment=home).token == "fairway_file"
    assert Place.find("http://127.0.0.1:7", environment=home).token == "fairway_file"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("127.0.0.1:8642", "http://127.0.0.1:8642"),
        (" https://fairway.example/ ", "https://fairway.example"),
        ("http://[::1]:8642", "http://[::1]:8642"),
    ],
)
def test_addresses_are_taken_as_people_write_them(given: str, meant: str) -> None:
    assert checked_address(given) == meant


@pytest.mark.parametrize(
    "given", ["ftp://x", "http://", "http://x:port", "http://x/path", "http://me:secret@x", "http://x?token=1", ""]
)
def test_other_addresses_are_refused(given: str) -> None:
    with pytest.raises(InputError, match="address: "):
        checked_address(given)


def test_a_token_file_that_cannot_be_read_is_said_to_be(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "token").mkdir()
    with pytest.raises(InputError, match="token: cannot be read: Is a directory; give --address and --token instead"):
        Place.find(environment=home)


def test_a_token_with_a_line_break_inside_is_refused(home: dict[str, str]) -> None:
    with pytest.raises(InputError, match="characters given that no token has"):
        Place.find(token="fairway_a\nb", environment=home)


def test_which_addresses_are_of_this_machine() -> None:
    ours = ["http://127.0.0.1:1", "http://127.3.2.1", "http://localhost", "http://[::1]:8642", "http://a.localhost"]
    assert all(map(on_this_machine, ours))
    assert not any(map(on_this_machine, ["http://10.0.0.1", "https://localhost.example", "http://0.0.0.0"]))


def test_a_token_may_stand_in_a_file_so_that_no_list_of_processes_shows_it(
    home: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "ann.token").write_text("fairway_ann\n")
    given = f"@{tmp_path / 'ann.token'}"
    assert Place.find(token=given, environment=home).token == "fairway_ann"
    assert Place.find(environment={**home, "FAIRWAY_TOKEN": given}).token == "fairway_ann"
    with pytest.raises(InputError, match=r"none: no such file; name one that holds a token"):
        Place.find(token=f"@{tmp_path / 'none'}", environment=home)
