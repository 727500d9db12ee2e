"""Starts the keeper of a run: `python -m fairway.live.local.keeper RUN_DIRECTORY`."""

import sys

from fairway.live.local.keeper.process import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
