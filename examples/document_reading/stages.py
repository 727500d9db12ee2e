"""The stages that read a page: each a class that loads its model, if it has one, and runs on a batch of requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

import fairway
from examples.document_reading import images, sessions

Page = np.ndarray
Lines = dict[str, Any]


@fairway.stage
class Decode:
    """A picture file to pixels."""

    def __call__(self, files: Sequence[bytes]) -> list[Page]:
        return [images.decoded(file) for file in files]


@fairway.stage(model="page-turner")
class PageOrientation:
    """By how many quarter turns to the left a page has to be turned until it stands upright."""

    SIZE, SHORT = 224, 256

    def load(self, threads: int) -> object:
        return sessions.open_session(sessions.model_file(sessions.ORIENTATION, sessions.PAGE_TURNER), threads)

    def __call__(self, model: Any, pages: Sequence[Page]) -> list[int]:
        batch = np.stack([self._centre(page) for page in pages])
        return [int(quarters) for quarters in sessions.run(model, batch).argmax(axis=1)]

    def _centre(self, page: Page) -> np.ndarray:
        height, width = page.shape[:2]
        ratio = self.SHORT / min(height, width)
        small = images.scaled(page, round(width * ratio), round(height * ratio))
        top, left = (small.shape[0] - self.SIZE) // 2, (small.shape[1] - self.SIZE) // 2
        cut = small[top : top + self.SIZE, left : left + self.SIZE]
        return images.normal(cut, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@fairway.stage(model="detector")
class Detect:
    """Where there are lines of text on a page."""

    def __init__(self, side: int = 736) -> None:
        self.side = side

    def load(self, threads: int) -> object:
        return sessions.open_session(sessions.model_file(sessions.OCR, sessions.DETECTOR), threads)

    def __call__(self, model: Any, pages: Sequence[Page]) -> list[np.ndarray]:
        boxes: list[np.ndarray] = [np.empty(0)] * len(pages)
        for (width, height), members in _alike([images.detector_size(page, self.side) for page in pages]).items():
            batch = np.stack([images.normal(images.scaled(pages[number], width, height)) for number in members])
            for number, likely in zip(members, sessions.run(model, batch)[:, 0], strict=True):
                boxes[number] = images.text_boxes(likely, pages[number])
        return boxes


@fairway.stage
class Cut:
    """The lines of an upright page, in reading order: their pictures and their boxes."""

    def __call__(self, pages: Sequence[Page], boxes: Sequence[np.ndarray], quarters: Sequence[int]) -> list[Lines]:
        return [self._cut(*each) for each in zip(pages, boxes, quarters, strict=True)]

    def _cut(self, page: Page, boxes: np.ndarray, quarters: int) -> Lines:
        height, width = page.shape[:2]
        upright = np.rot90(page, quarters)
        ordered = images.in_reading_order(images.turned_boxes(boxes, quarters, width, height))
        pictures = [np.ascontiguousarray(upright[top:bottom, left:right]) for left, top, right, bottom in ordered]
        return {"pictures": pictures, "boxes": ordered}


@fairway.stage(model="line-turner")
class OrientLines:
    """Lines that stand on their head are turned round."""

    WIDTH, HEIGHT, SURE = 192, 48, 0.9  # the model sees the beginning of a line; a long one would be squeezed too much

    def load(self, threads: int) -> object:
        return sessions.open_session(sessions.model_file(sessions.OCR, sessions.LINE_TURNER), threads)

    def __call__(self, model: Any, pages: Sequence[Lines]) -> list[list[np.ndarray]]:
        pictures = [picture for lines in pages for picture in lines["pictures"]]
        if not pictures:
            return [[] for _ in pages]
        ratio = self.WIDTH / self.HEIGHT
        starts = [picture[:, : max(1, int(ratio * picture.shape[0]))] for picture in pictures]
        batch = np.stack([_padded(start, self.WIDTH, self.HEIGHT) for start in starts])
        upside_down = sessions.run(model, batch)[:, 1] > self.SURE
        turned = iter(
            np.ascontiguousarray(picture[::-1, ::-1]) if over else picture
            for picture, over in zip(pictures, upside_down, strict=True)
        )
        return [[next(turned) for _ in lines["pictures"]] for lines in pages]


@fairway.stage(model="recogniser")
class Recognise:
    """The text of each line, and how sure it is."""

    HEIGHT, STEP = 48, 32

    def load(self, threads: int) -> object:
        session = sessions.open_session(sessions.model_file(sessions.OCR, sessions.RECOGNISER), threads)
        return session, [*session.get_modelmeta().custom_metadata_map["character"].splitlines(), " "]

    def __call__(self, model: Any, pages: Sequence[list[np.ndarray]]) -> list[list[tuple[str, float]]]:
        # On a CPU, lines one by one are faster than several at once, which do not fit into its caches.
        return [[self._read(*model, picture) for picture in lines] for lines in pages]

    def _read(self, session: Any, alphabet: list[str], picture: np.ndarray) -> tuple[str, float]:
        height, width = picture.shape[:2]
        steps = max(5, -(-width * self.HEIGHT // (height * self.STEP)))
        probabilities = sessions.run(session, _padded(picture, steps * self.STEP, self.HEIGHT)[None])
        return images.letters(probabilities[0], alphabet)


@fairway.stage
class Paragraphs:
    """Which lines belong together: those that follow closely on each other."""

    def __call__(self, pages: Sequence[Lines]) -> list[list[list[int]]]:
        return [self._grouped(lines["boxes"]) for lines in pages]

    def _grouped(self, boxes: np.ndarray) -> list[list[int]]:
        groups: list[list[int]] = []
        for number, (_, top, _, bottom) in enumerate(boxes):
            above = boxes[groups[-1][-1]] if groups else None
            if above is not None and top - above[3] < 0.7 * (bottom - top):
                groups[-1].append(number)
            else:
                groups.append([number])
        return groups


@fairway.stage
class Assemble:
    """The document: its text by paragraphs, and the lines with their boxes; as plain as JSON."""

    SURE = 0.5

    def __call__(
        self,
        pages: Sequence[Lines],
        texts: Sequence[list[tuple[str, float]]],
        paragraphs: Sequence[list[list[int]]],
        quarters: Sequence[int],
    ) -> list[dict[str, Any]]:
        return [self._document(*each) for each in zip(pages, texts, paragraphs, quarters, strict=True)]

    def _document(
        self, lines: Lines, texts: list[tuple[str, float]], paragraphs: list[list[int]], quarters: int
    ) -> dict[str, Any]:
        kept = {number: text for number, (text, sure) in enumerate(texts) if text and sure >= self.SURE}
        joined = [" ".join(kept[number] for number in group if number in kept) for group in paragraphs]
        return {
            "text": "\n\n".join(paragraph for paragraph in joined if paragraph),
            "lines": [
                {"text": text, "sure": round(texts[number][1], 4), "box": lines["boxes"][number].tolist()}
                for number, text in kept.items()
            ],
            "turned": 90 * quarters,
        }


def _alike(kinds: Sequence[Any]) -> dict[Any, list[int]]:
    """The positions of equal things."""
    groups: dict[Any, list[int]] = defaultdict(list)
    for number, kind in enumerate(kinds):
        groups[kind].append(number)
    return groups


def _padded(picture: np.ndarray, width: int, height: int) -> np.ndarray:
    """A line at the model's height, with nothing to its right up to the width."""
    own = min(width, -(-picture.shape[1] * height // picture.shape[0]))
    padded = np.zeros((3, height, width), np.float32)
    padded[:, :, :own] = images.normal(images.scaled(picture, own, height))
    return padded
