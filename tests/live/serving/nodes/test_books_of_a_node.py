"""Where processes listen, as a file that is read again when it has changed, and values that travel between nodes."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from fairway.live.serving.nodes.address_book import AddressBook, Place
from fairway.live.serving.nodes.carried_values import Carriage, Name
from fairway.live.serving.seams.values import HANDED_OVER, CarriedBytes


def test_a_place_is_found_once_it_is_written(tmp_path: Path) -> None:
    book = AddressBook(tmp_path / "book")
    assert dict(book.places) == {}
    with pytest.raises(OSError, match="process 1 is not in"):
        book.find(1)
    AddressBook(tmp_path / "book").write({1: Place("h", 80, 3)})
    assert book.find(1) == Place("h", 80, 3)
    AddressBook(tmp_path / "book").write({2: Place("h", 81, 4)})
    assert dict(book.places) == {2: Place("h", 81, 4)}


def test_a_book_that_has_not_changed_is_not_read_again_and_one_that_is_gone_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "book"
    book = AddressBook(path)
    book.write({1: Place("h", 80, 3)})
    first = book.places
    assert book.places is first
    os.utime(path, ns=(1, 1))
    assert book.places is not first
    path.unlink()
    assert book.find(1) == Place("h", 80, 3)


@pytest.mark.parametrize("kind", [*sorted(HANDED_OVER), "row"])
def test_a_message_that_leaves_the_node_has_the_bytes_of_what_it_names(tmp_path: Path, kind: str) -> None:
    (tmp_path / "buffer").write_bytes(b"content")
    carried = pickle.loads(Carriage(tmp_path).pickled((kind, Name("buffer"), "plain")))
    assert (carried[0], carried[1], carried[2]) == (kind, b"content", "plain")
    assert isinstance(carried[1], CarriedBytes)
    assert carried[1].name == "buffer"
    assert type(carried[2]) is str
    assert (tmp_path / "buffer").exists() is (kind == "row"), "what was handed over is the receiver's"


def test_a_buffer_that_is_gone_travels_as_its_name(tmp_path: Path) -> None:
    carried = pickle.loads(Carriage(tmp_path).pickled(("row", Name("buffer"))))
    assert carried == ("row", "buffer")
    assert type(carried[1]) is str
