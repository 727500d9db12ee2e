"""A driver without Ray: it answers what it was asked, and refuses, waits or dies where it is asked to."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any


def say(content: tuple[int, bool, Any]) -> None:
    pickle.dump(content, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def main() -> None:
    options = json.loads(sys.argv[1])
    if Path("refuses").exists():
        print(json.dumps({"ok": False, "error": "address: no Ray here"}), flush=True)
        sys.exit(2)
    print(json.dumps({"ok": True, "address": options["address"]}), flush=True)
    while True:
        try:
            number, question, content = pickle.load(sys.stdin.buffer)
        except EOFError:
            break
        if question == "die":
            os._exit(1)
        if question != "wait":
            say((number, question != "refuse", content))
    Path("ended").touch()


if __name__ == "__main__":
    main()
