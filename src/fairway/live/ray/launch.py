"""Starts the agent of a node so that it belongs to the node and not to an actor: it ends with the raylet, not before.

    python -m fairway.live.ray.launch DIRECTORY RAYLET_PID TIME_SCALE [EMULATE]

Ray kills the children of an actor when it ends the actor, whatever session they are in. The agent is a child of this
program, which ends as soon as the agent listens. The agent is bound to the raylet instead: once that has ended, Ray
counts the node as lost and its jobs go on elsewhere, so that none of their processes may be left here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fairway.errors import FairwayError
from fairway.live.local.agent.client import start_agent

_PATIENCE_SECONDS = 50.0


def main(arguments: list[str]) -> int:
    """Start an agent; 2 if it does not start."""
    directory, raylet, time_scale, *emulate = arguments
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        del os.environ[name]  # they say to a program that it is a worker of Ray, which jobs are not
    try:
        start_agent(
            Path(directory),
            emulate=emulate[0] if emulate else None,
            time_scale=float(time_scale),
            patience=_PATIENCE_SECONDS,
            bound_to=int(raylet),
        )
    except (FairwayError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # without waiting for the agent
