"""Starts the agent of a machine: `python -m fairway.live.local.agent`."""

import sys

from fairway.live.local.agent.process import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
