"""Fuzzes the doors: python -m tests.fuzz [DOOR...] --seconds 60

With atheris (`pip install fairway[fuzz]`), guided by which code the bytes reach; without it, by mutation alone. Ends at
the first input that is neither taken nor refused, writes it to a file and prints where it went wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
import traceback
from importlib.util import find_spec
from itertools import count
from pathlib import Path

_GUIDED = find_spec("atheris") is not None


def main() -> int:
    """Fuzz each door in a process of its own: libFuzzer ends the one that it runs in."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Give hostile bytes to every door.")
    parser.add_argument("doors", nargs="*", metavar="DOOR", help="which; all of them otherwise")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each door")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        return _guided(given.doors[0], given.seconds, given.seed)
    from tests.fuzz.doors import DOORS

    unknown = set(given.doors) - set(DOORS)
    if unknown:
        parser.error(f"no such door: {', '.join(sorted(unknown))}; there are {', '.join(DOORS)}")
    failed = []
    for name in given.doors or DOORS:
        began = time.monotonic()
        if _GUIDED:
            arguments = [name, "--seconds", str(given.seconds), "--seed", str(given.seed), "--inside"]
            code = subprocess.run([sys.executable, "-m", "tests.fuzz", *arguments], check=False).returncode
        else:
            code = _mutated(name, given.seconds, given.seed)
        failed += [name] if code else []
        how = "guided by coverage" if _GUIDED else "by mutation; atheris is not installed"
        print(f"{name}: {'FAILED' if code else 'no defect'} in {time.monotonic() - began:.0f} s, {how}", flush=True)
    return 1 if failed else 0


def _mutated(name: str, seconds: float, seed: int) -> int:
    from tests.fuzz.doors import DOORS
    from tests.fuzz.mutations import mutated, try_door

    door, end = DOORS[name], time.monotonic() + seconds
    for number in count(seed):
        for data in mutated(door.beginnings, 1000, number):
            if time.monotonic() > end:
                return 0
            try:
                try_door(door, data)
            except Exception:
                traceback.print_exc()
                print(f"{name}: {_kept(data)}")
                return 1
    return 0


def _guided(name: str, seconds: float, seed: int) -> int:
    import atheris

    with atheris.instrument_imports(include=["fairway", "yaml"]):
        from tests.fuzz.doors import DOORS
    from tests.fuzz.mutations import mutated, try_door

    door = DOORS[name]

    def enter(data: bytes) -> None:
        try:
            try_door(door, data)
        except Exception:
            print(f"{name}: {_kept(data)}")
            raise

    with tempfile.TemporaryDirectory() as corpus:
        for number, data in enumerate(mutated(door.beginnings, 50, seed)):
            Path(corpus, str(number)).write_bytes(data)
        options = [f"-max_total_time={seconds:.0f}", f"-seed={seed}", "-verbosity=0", "-max_len=8192", "-timeout=20"]
        atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={tempfile.gettempdir()}/", corpus], enter)
        atheris.Fuzz()
    return 0


def _kept(data: bytes) -> Path:
    path = Path(tempfile.gettempdir(), f"fairway-fuzz-{hashlib.sha256(data).hexdigest()[:12]}")
    path.write_bytes(data)
    return path


if __name__ == "__main__":
    sys.exit(main())
