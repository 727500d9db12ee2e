"""Pages to read: drawn with a seed, so that nothing is downloaded and everybody has the same."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from PIL import Image, ImageDraw, ImageFont

_WORDS = """
accelerator allocation answer archive balance batch between cluster compass contract copper delivery
document engine evening fairway field garden gravel harbour history invoice island journal kernel ladder
letter library market memory meadow message morning network number office orange packet page parcel pattern
payment picture planet pocket policy printer project queue railway receipt record register river schedule
season signal silver station summer supplier thunder timber token total travel valley velvet village violet
weather window winter worker
"""
WORDS = tuple(_WORDS.split())


@dataclass(frozen=True)
class SamplePage:
    """A page as a PNG file, the words on it in reading order, and by how many quarter turns it lies on its side."""

    image: bytes
    words: tuple[str, ...]
    quarters: int


def draw_page(
    seed: int, *, lines: int = 4, width: int = 544, height: int = 320, quarters: int | None = None
) -> SamplePage:
    """A page of words that the seed chooses; one page in four lies on its side or stands on its head."""
    chance = random.Random(seed)
    page = Image.new("RGB", (width, height), (chance.randint(235, 255),) * 3)
    pen = ImageDraw.Draw(page)
    font = ImageFont.load_default(chance.choice((22, 24, 26)))
    ink = (chance.randint(0, 60),) * 3
    words: list[str] = []
    margin, top = 32, 24.0
    for number in range(lines):
        line: list[str] = []
        while True:
            word = chance.choice(WORDS) if chance.random() > 0.1 else str(chance.randint(10, 9999))
            if pen.textlength(" ".join([*line, word]), font) > width - 2 * margin or len(line) == 5:
                break
            line.append(word)
        pen.text((margin, top), " ".join(line), ink, font)
        words += line
        # A paragraph ends after every third line.
        top += 1.6 * font.size if number % 3 < 2 else 2.8 * font.size
        if top + 2 * font.size > height:
            break
    turns = (chance.choice((1, 2, 3)) if chance.random() < 0.25 else 0) if quarters is None else quarters
    file = io.BytesIO()
    page.rotate(90 * turns, expand=True).save(file, "PNG")
    return SamplePage(file.getvalue(), tuple(words), turns)


def sample_pages() -> Iterator[dict[str, Any]]:
    """Inputs of `read_document`, for measuring."""
    for seed in range(8):
        yield {"image": draw_page(seed).image}
