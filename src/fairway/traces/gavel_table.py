"""The 26 job types of Gavel's generator, in the order in which it draws them (Gavel, table 2).

The position of a type decides which draw selects it, so that the order must never change.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobType:
    """A job type, and whether it can run on several workers."""

    name: str
    distributable: bool


def _batch_sizes(model: str, sizes: tuple[int, ...], distributable: bool) -> tuple[JobType, ...]:
    return tuple(JobType(f"{model} (batch size {size})", distributable) for size in sizes)


JOB_TABLE: tuple[JobType, ...] = (
    *_batch_sizes("ResNet-18", (16, 32, 64, 128, 256), distributable=True),
    *_batch_sizes("ResNet-50", (16, 32, 64, 128), distributable=True),
    *_batch_sizes("Transformer", (16, 32, 64, 128, 256), distributable=True),
    *_batch_sizes("LM", (5, 10, 20, 40, 80), distributable=True),
    *_batch_sizes("Recommendation", (512, 1024, 2048, 4096, 8192), distributable=False),
    JobType("A3C", distributable=False),
    JobType("CycleGAN", distributable=False),
)
