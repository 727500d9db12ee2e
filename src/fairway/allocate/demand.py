"""The work that keeps coming, by class of jobs: what a policy has to know that plans for jobs not yet here.

A class is a job type with a gang size: jobs that run at the same rates. Whoever runs a policy may say how much work of
each class comes in a second; the training engine learns it from the jobs it has seen (`engine.training.arrivals`).
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.allocate.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Demand:
    """What comes: `work[c]` steps of class c in a second, of gangs of `scale_factors[c]` at `rates[c, j]` alone.

    `pairs[c, d, j]` are the rates of a job of class c and one of class d while they share type j, 0 where they cannot.
    """

    rates: FloatArray
    scale_factors: FloatArray
    work: FloatArray
    pairs: FloatArray | None = None
