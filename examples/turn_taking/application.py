"""A voice assistant's ear: `fairway serve examples.turn_taking.application --scheduler fairway`.

Ten times a second each caller sends the last 384 ms of sound, and has to know whether somebody speaks before the next
piece is due: 100 ms later the answer is of no use to anybody. Requests are short and many, so batches over callers are
what makes them cheap.

    sound ─▶ Samples ─┬─▶ Voice (Silero) ─┬─▶ Turn ─▶ {"speaking", "likely", "decibels"}
                      └─▶ Loudness ───────┘
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import fairway
from examples.document_reading import sessions, speech

RATE = speech.RATE
PIECE_SAMPLES = 6144
"""What a caller sends at a time: 384 ms, twelve frames of the model."""

_QUIET_DECIBELS = -50.0
_LAST_FRAMES = 4


@fairway.stage
class Samples:
    """Raw sound, 16 bits at 16 kHz, to numbers from -1 to 1."""

    def __call__(self, pieces: Sequence[bytes]) -> list[np.ndarray]:
        return [self._samples(piece) for piece in pieces]

    def _samples(self, piece: bytes) -> np.ndarray:
        if len(piece) % 2 or not 2 <= len(piece) <= 2 * PIECE_SAMPLES:
            raise ValueError(
                f"{len(piece)} bytes given, expected up to {2 * PIECE_SAMPLES}: 16 bits at {RATE} Hz, little-endian"
            )
        samples = np.frombuffer(piece, "<i2").astype(np.float32) / 32768
        return np.concatenate([np.zeros(PIECE_SAMPLES - len(samples), np.float32), samples])


@fairway.stage(model="listener")
class Voice:
    """How likely it is that somebody speaks in the last frames of a piece."""

    def load(self, threads: int) -> object:
        return sessions.open_session(speech.FILE, threads)

    def __call__(self, model: Any, pieces: Sequence[np.ndarray]) -> list[float]:
        return [float(likely[-_LAST_FRAMES:].mean()) for likely in speech.likelihoods(model, pieces)]


@fairway.stage
class Loudness:
    """Decibels below the loudest sound that there can be."""

    def __call__(self, pieces: Sequence[np.ndarray]) -> list[float]:
        return [float(20 * np.log10(max(float(np.sqrt(np.mean(piece**2))), 1e-5))) for piece in pieces]


@fairway.stage
class Turn:
    """Somebody speaks if it sounds like a voice, and is more than what a room sounds like."""

    def __call__(self, likely: Sequence[float], decibels: Sequence[float]) -> list[dict[str, Any]]:
        return [
            {"speaking": part > 0.5 and loud > _QUIET_DECIBELS, "likely": round(part, 3), "decibels": round(loud, 1)}
            for part, loud in zip(likely, decibels, strict=True)
        ]


def draw_piece(seed: int, *, speaking: bool) -> bytes:
    """A piece of sound: of somebody who speaks, or of a quiet room."""
    seconds = PIECE_SAMPLES / RATE
    recording = speech.draw_recording(seed, speech_seconds=1.0, quiet_seconds=2 * seconds)
    sound = recording[44:]  # without the head of the WAV file
    begin = int((2 * seconds + 0.3 if speaking else 0.1) * RATE) * 2
    return sound[begin : begin + 2 * PIECE_SAMPLES]


def sample_pieces() -> Iterator[dict[str, Any]]:
    """Inputs to measure with."""
    for seed in range(8):
        yield {"sound": draw_piece(seed, speaking=seed % 2 == 0)}


if speech.FILE is not None:

    @fairway.workflow(name="whose-turn", slo="100ms", samples=sample_pieces)
    def whose_turn(sound: bytes) -> Any:
        """Whether the caller speaks."""
        samples = Samples()(sound)
        return Turn()(Voice()(samples), Loudness()(samples))
