"""What happens to pixels before and after a model: scaling, finding boxes of text, telling letters."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image
from scipy import ndimage

from fairway import InputError

STEP = 32
"""The detector takes sides that are multiples of this."""


def decoded(image: bytes) -> np.ndarray:
    """The pixels of a PNG or JPEG file: rows, columns, red, green and blue."""
    try:
        return np.asarray(Image.open(io.BytesIO(image)).convert("RGB"))
    except (OSError, ValueError) as error:  # what Pillow raises of files that it cannot read, or not to their end
        why = str(error).partition(" <")[0]
        raise InputError(f"image: {len(image)} bytes given, expected a PNG or JPEG file ({why})") from None


def scaled(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """The picture in another size."""
    return np.asarray(Image.fromarray(pixels).resize((max(1, width), max(1, height)), Image.Resampling.BILINEAR))


def normal(pixels: np.ndarray, mean: object = 0.5, spread: object = 0.5) -> np.ndarray:
    """Blue, green and red as planes of small numbers, as the models were trained with."""
    planes = (pixels[..., ::-1].astype(np.float32) / 255 - np.float32(mean)) / np.float32(spread)
    return planes.transpose(2, 0, 1)


def detector_size(pixels: np.ndarray, side: int) -> tuple[int, int]:
    """Width and height for the detector: no side longer than `side`, both multiples of 32."""
    height, width = pixels.shape[:2]
    ratio = min(1.0, side / max(height, width))
    return (max(STEP, round(width * ratio / STEP) * STEP), max(STEP, round(height * ratio / STEP) * STEP))


def text_boxes(likely: np.ndarray, pixels: np.ndarray, threshold: float = 0.3, sure: float = 0.5) -> np.ndarray:
    """Boxes of text as rows (left, top, right, bottom), from how likely each point is to be text.

    The network marks the core of each line; a box grows by 1.6 times its area over its perimeter to hold the letters.
    """
    labels, _ = ndimage.label(ndimage.binary_dilation(likely > threshold, np.ones((2, 2))))
    boxes = []
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
        height, width = rows.stop - rows.start, columns.stop - columns.start
        inside = likely[rows, columns][labels[rows, columns] == number]
        if min(height, width) < 3 or inside.mean() < sure:
            continue
        grown = 1.6 * height * width / (2 * (height + width))
        boxes.append((columns.start - grown, rows.start - grown, columns.stop + grown, rows.stop + grown))
    if not boxes:
        return np.empty((0, 4), np.int64)
    scale = np.array([pixels.shape[1] / likely.shape[1], pixels.shape[0] / likely.shape[0]] * 2)
    most = [pixels.shape[1], pixels.shape[0]] * 2
    return np.clip(np.rint(np.array(boxes) * scale), 0, most).astype(np.int64)


def turned_boxes(boxes: np.ndarray, quarters: int, width: int, height: int) -> np.ndarray:
    """The boxes on the picture after so many quarter turns to the left, as numpy turns arrays."""
    for _ in range(quarters % 4):
        left, top, right, bottom = boxes.T
        boxes = np.stack([top, width - right, bottom, width - left], axis=1)
        width, height = height, width
    return boxes


def in_reading_order(boxes: np.ndarray) -> np.ndarray:
    """The boxes from top to bottom, and from left to right where they stand side by side."""
    rows: list[list[np.ndarray]] = []
    for box in sorted(boxes, key=lambda box: box[1] + box[3]):
        middle = (box[1] + box[3]) / 2
        if rows and any(other[1] < middle < other[3] for other in rows[-1]):
            rows[-1].append(box)
        else:
            rows.append([box])
    ordered = [box for row in rows for box in sorted(row, key=lambda box: box[0])]
    return np.array(ordered, np.int64).reshape(-1, 4)


def letters(probabilities: np.ndarray, alphabet: list[str]) -> tuple[str, float]:
    """The text that a row of probabilities spells, and how sure that is: repetitions and blanks (0) fall away."""
    best = probabilities.argmax(axis=1)
    kept = (best != 0) & np.concatenate([[True], best[1:] != best[:-1]])
    if not kept.any():
        return "", 0.0
    text = "".join(alphabet[index - 1] for index in best[kept]).strip()
    return text, float(probabilities.max(axis=1)[kept].mean())
