"""What jobs have done by now, from when they began and how fast they run."""

from __future__ import annotations

from fairway.allocate.arrays import FloatArray
from fairway.compiled import compiled


@compiled()
def advance(
    now: float,
    left: FloatArray,
    done: FloatArray,
    since: FloatArray,
    rate: FloatArray,
    scale: FloatArray,
    pooled: FloatArray,
    isolated: FloatArray,
    workers: int,
) -> None:
    """Count the steps done since `since`, which becomes now, and the time that they take on an equal share.

    On an equal share of n jobs a gang of s runs at pooled / max(n s, workers), where `pooled` is the sum of its rates
    over all workers. When a job has done all the steps that it said, the news of its end may be on the way, so that at
    first no more are counted. One that runs on has said too few: what it does from then on counts, or it would seem to
    fall ever further behind the others.
    """
    jobs = len(left)
    for job in range(jobs):
        if now > since[job]:
            steps = rate[job] * (now - since[job])
            if 0.0 < left[job] < steps:
                steps = left[job]
            if steps > 0.0:
                left[job] = max(left[job] - steps, 0.0)
                done[job] += steps
                isolated[job] += steps * max(jobs * scale[job], workers) / pooled[job]
            since[job] = now
