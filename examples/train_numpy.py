"""Trains a small model on made-up data, as a job of Fairway or by itself: `python train_numpy.py --model mlp`.

All that Fairway needs is the loop over `fairway.leased`. When the lease ends, the weights are saved and the process
stops; started again, on whatever accelerator, it goes on from there. The batch of a step depends on nothing but the
step, so the weights at the end are the same however often it was stopped.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

import fairway

Array = npt.NDArray[np.float64]

FEATURES, BATCH, RATE, MOMENTUM = 16, 64, 0.05, 0.9


def batches(start: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Points inside and outside of a ball, with a label each; the first batch is that of step `start`."""
    for step in itertools.count(start):
        points = np.random.default_rng([seed, step]).normal(size=(BATCH, FEATURES))
        yield points, (np.square(points).sum(axis=1) < FEATURES).astype(float)


def new_weights(model: str, seed: int) -> dict[str, Array]:
    """A logistic regression on the squares of the features, or a network with one hidden layer."""
    if model == "logistic":
        return {"out": np.zeros(FEATURES), "bias": np.zeros(1)}
    draws = np.random.default_rng(seed)
    hidden = 32
    return {
        "hidden": draws.normal(size=(FEATURES, hidden)) / np.sqrt(FEATURES),
        "hidden_bias": np.zeros(hidden),
        "out": draws.normal(size=hidden) / np.sqrt(hidden),
        "bias": np.zeros(1),
    }


def gradients(weights: dict[str, Array], points: Array, labels: Array) -> tuple[float, dict[str, Array]]:
    """The cross-entropy of a batch, and how it changes with the weights."""
    inner = points @ weights["hidden"] + weights["hidden_bias"] if "hidden" in weights else points
    features = np.maximum(inner, 0.0) if "hidden" in weights else np.square(inner)
    score = features @ weights["out"] + weights["bias"]
    guess = 1 / (1 + np.exp(-np.clip(score, -30, 30)))
    loss = -np.mean(labels * np.log(guess + 1e-12) + (1 - labels) * np.log(1 - guess + 1e-12))
    error = (guess - labels) / len(labels)
    found = {"out": features.T @ error, "bias": error.sum(keepdims=True)}
    if "hidden" in weights:
        back = np.outer(error, weights["out"]) * (inner > 0)
        found |= {"hidden": points.T @ back, "hidden_bias": back.sum(axis=0)}
    return float(loss), found


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a small model on made-up data.")
    parser.add_argument("--model", choices=["logistic", "mlp"], default="logistic")
    parser.add_argument("--steps", type=int, default=int(os.environ.get("FAIRWAY_STEPS", "1000")))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    weights = new_weights(options.model, options.seed)
    speed = {name: np.zeros_like(value) for name, value in weights.items()}
    loss = math.nan

    def loader() -> Iterator[tuple[Array, Array]]:
        yield from batches(run.start, options.seed)

    def checkpoint(step: int) -> dict[str, Array]:
        print(f"saves step {step}, loss {loss:.4f}")
        return {**weights, **{f"speed_{name}": value for name, value in speed.items()}}

    run = fairway.leased(loader(), checkpoint=checkpoint, steps=options.steps, skip=False)
    if run.state is not None:
        weights = {name: run.state[name] for name in weights}
        speed = {name: run.state[f"speed_{name}"] for name in speed}
        print(f"goes on after step {run.start}")
    for points, labels in run:
        loss, slopes = gradients(weights, points, labels)
        for name, slope in slopes.items():
            speed[name] = MOMENTUM * speed[name] - RATE * slope
            weights[name] = weights[name] + speed[name]
    print(f"done after {run.step} steps, loss {loss:.4f}")


if __name__ == "__main__":
    main()
