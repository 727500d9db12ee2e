"""Says from which sources the page was built: a digest that `make dashboard` writes beside it, and a test compares."""

from __future__ import annotations

import hashlib
from pathlib import Path

HERE = Path(__file__).parent
BUILT = HERE.parent / "src" / "fairway" / "dashboard" / "static"
RECORD = BUILT / "built-from.txt"

_ALSO = ("package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")


def digest() -> str:
    """The SHA-256 over names and contents of all that the page is built from."""
    total = hashlib.sha256()
    for path in [*sorted((HERE / "src").rglob("*.*")), *(HERE / name for name in _ALSO)]:
        total.update(f"{path.relative_to(HERE).as_posix()}\0".encode())
        total.update(path.read_bytes())
    return total.hexdigest()


if __name__ == "__main__":
    RECORD.write_text(f"{digest()}\n", encoding="utf-8")
