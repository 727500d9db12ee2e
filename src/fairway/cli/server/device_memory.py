"""Reads how much memory accelerators have that do not say it: `gb10=120GB`."""

from __future__ import annotations

from fairway.errors import InputError
from fairway.quantities import memory_of


def device_memory_of(text: str) -> dict[str, int]:
    """Bytes by type, from words."""
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = (each.strip() for each in part.partition("="))
        try:
            found = memory_of(size) if name else 0
        except InputError:
            found = 0
        if not found:
            raise InputError(f"--device-memory: '{part}' given, expected TYPE=SIZE, as in gb10=120GB")
        if name in sizes:
            raise InputError(f"--device-memory: '{name}' given twice; keep one")
        sizes[name] = found
    return sizes
