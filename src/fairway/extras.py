"""Which extra of Fairway brings a library that only some of its parts need, for the message when that is missing.

The three decisions and the simulator need none of them. `pyproject.toml` has the same list; a test compares the two.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

EXTRAS = {
    "live": ("sqlalchemy", "psycopg", "fastapi", "starlette", "uvicorn", "httptools", "httpx", "prometheus_client"),
    "tables": ("polars",),
    "fsspec": ("fsspec",),
    "ray": ("ray",),
}
"""The libraries that each extra brings, by the name that Python imports them by."""


def require(*libraries: str) -> None:
    """Raise as importing one of them would, without waiting for it: before work is done whose result needs them."""
    for library in libraries:
        if sys.modules.get(library, library) is None or find_spec(library) is None:
            raise ModuleNotFoundError(f"No module named '{library}'", name=library)


def missing(error: ModuleNotFoundError) -> str | None:
    """A line that says which extra brings the library that is missing, or None if no extra does."""
    library = (error.name or "").partition(".")[0]
    for extra, libraries in EXTRAS.items():
        if library in libraries:
            return (
                f"this needs {library}, which is not installed; install Fairway with its extra '{extra}', "
                f"or {library} by itself"
            )
    return None
