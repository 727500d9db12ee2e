"""Reads what accelerators cost: `v100=0.74,k80=0.135`, in dollars per worker and hour."""

from __future__ import annotations

import math

from fairway.errors import InputError
from fairway.magnitudes import FACTORS


def prices_of(text: str) -> dict[str, float]:
    """The prices that words name."""
    prices: dict[str, float] = {}
    for part in text.split(","):
        name, _, amount = (each.strip() for each in part.partition("="))
        try:
            dollars = float(amount)
        except ValueError:
            dollars = math.nan
        if not (name and dollars > 0 and dollars in FACTORS):
            raise InputError(
                f"--prices: '{part}' given, expected TYPE=DOLLARS, as in v100=0.74, above 0, from {FACTORS}"
            )
        if name in prices:
            raise InputError(f"--prices: '{name}' given twice; keep one")
        prices[name] = dollars
    return prices
