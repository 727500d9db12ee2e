"""Removes what the processes of a node share, once the process that has made it is gone, however that ended.

python -m fairway.live.serving.nodes.sweeper PARENT DIRECTORY
"""

from __future__ import annotations

import os
import shutil
import sys
import time

_LOOK_SECONDS = 0.5


def sweep(parent: int, directory: str) -> None:
    """Wait until the parent is gone, and remove the directory."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sweep(int(sys.argv[1]), sys.argv[2])
