"""The workflows to serve: `fairway serve examples.document_reading.application`.

`read-document` is always there; the others are where their models are installed.
"""

from __future__ import annotations

from typing import Any

import fairway
from examples.document_reading import meaning, speech
from examples.document_reading.samples import sample_pages
from examples.document_reading.stages import (
    Assemble,
    Cut,
    Decode,
    Detect,
    OrientLines,
    PageOrientation,
    Paragraphs,
    Recognise,
)


@fairway.workflow(name="read-document", slo="2s", samples=sample_pages)
def read_document(image: bytes) -> Any:
    """The text on a picture of a page, whichever way it lies."""
    page = Decode()(image)
    quarters = PageOrientation()(page)
    boxes = Detect()(page)
    lines = Cut()(page, boxes, quarters)
    texts = Recognise()(OrientLines()(lines))
    return Assemble()(lines, texts, Paragraphs()(lines), quarters)


if speech.FILE is not None:

    @fairway.workflow(name="listen", slo="1s", samples=speech.sample_recordings)
    def listen(recording: bytes) -> Any:
        """When somebody speaks in a recording."""
        return speech.Listen()(speech.DecodeSound()(recording))


if meaning.WEIGHTS is not None:

    @fairway.workflow(name="gist", slo="2s", samples=sample_pages)
    def gist(image: bytes) -> Any:
        """The text of a page, and what it is about."""
        document = read_document(image)
        return {"document": document, "gist": meaning.Gist()(document)}
