"""Reads the throughput files of Gavel (github.com/stanford-futuredata/gavel, `*_throughputs.json`).

The form is `{worker_type: {"('LM (batch size 5)', 1)": {"null": 109.2, "('A3C', 1)": [61.0, 4.1]}}}`: keys are Python
tuples of job type and scale factor, "null" is the rate alone, and every other entry the rates while sharing with that
partner. The rates under `v100_unconsolidated` are the spread rates of `v100`. Two things there are left out: rates at
scale factor 1, because a single worker is never spread, and pairs, because sharing is between consolidated gangs.
"""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from functools import lru_cache
from typing import Any

from fairway.errors import InputError
from fairway.profiles.tables import IsolatedRate, PairRate, ThroughputTable

_ALONE = "null"
_SPREAD_SUFFIX = "_unconsolidated"


def parse_gavel_json(text: str, name: str) -> ThroughputTable:
    """Read the text of a Gavel throughput file; `name` is the file's name in errors and the source of the table."""
    try:
        content = json.loads(text, parse_int=float)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: not valid JSON: {error}") from None

    isolated: list[IsolatedRate] = []
    spread: dict[tuple[str, str, int], IsolatedRate] = {}
    shared: list[PairRate] = []
    for worker_type, jobs in _object(content, name, "worker types").items():
        accelerator = worker_type.removesuffix(_SPREAD_SUFFIX)
        for key, rates in _object(jobs, _at(name, worker_type), "job types").items():
            row = _isolated(accelerator, key, rates, _at(name, worker_type, key))
            if accelerator != worker_type:
                spread[accelerator, row.job_type, row.scale_factor] = row
            else:
                isolated.append(row)
                shared += [_pair(row, partner, both) for partner, both in rates.items() if partner != _ALONE]
    merged = [_with_spread(row, spread.pop(_key(row), None)) for row in isolated]
    if spread:
        row = next(iter(spread.values()))
        raise InputError(f"{row.origin}: the same under {row.accelerator!r} is missing; give that as well")
    return ThroughputTable(tuple(merged), tuple(shared), source=name)


def _key(row: IsolatedRate) -> tuple[str, str, int]:
    return row.accelerator, row.job_type, row.scale_factor


def _isolated(accelerator: str, key: str, rates: object, where: str) -> IsolatedRate:
    job_type, scale_factor = _job_key(key, where)
    entries = _object(rates, where, "rates")
    if _ALONE not in entries:
        raise InputError(f'{where}: "null" is missing, expected the rate alone under it')
    return IsolatedRate(job_type, scale_factor, accelerator, _number(entries[_ALONE], where), origin=where)


def _with_spread(row: IsolatedRate, spread: IsolatedRate | None) -> IsolatedRate:
    if spread is None or row.scale_factor == 1:
        return row
    return replace(row, spread_steps_per_second=spread.steps_per_second)


def _pair(row: IsolatedRate, partner_key: str, both: object) -> PairRate:
    where = _at(row.origin, partner_key)
    partner, scale_factor = _job_key(partner_key, where)
    if scale_factor != row.scale_factor:
        raise InputError(
            f"{where}: scale factors {row.scale_factor} and {scale_factor} given, expected equal ones; only gangs of "
            "the same size can share"
        )
    if not isinstance(both, list) or len(both) != 2:
        raise InputError(f"{where}: {json.dumps(both)} given, expected two rates as in [61.0, 4.1]")
    rate, partner_rate = (_number(value, where) for value in both)
    return PairRate(row.job_type, partner, scale_factor, row.accelerator, rate, partner_rate, origin=where)


def _at(*path: str) -> str:
    return ", ".join(part if part.isprintable() else ascii(part) for part in path)


def _object(value: object, where: str, of: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: {type(value).__name__} given, expected an object of {of}")
    return value


def _number(value: object, where: str) -> float:
    if not isinstance(value, float):
        raise InputError(f"{where}: {json.dumps(value)} given, expected steps per second")
    return value


def _job_key(key: str, where: str) -> tuple[str, int]:
    match _literal(key):
        case tuple((str(job_type), int(scale_factor))) if not isinstance(scale_factor, bool):
            return job_type, scale_factor
    raise InputError(f"{where}: not a job key, expected a job type and a scale factor as in ('LM (batch size 5)', 1)")


@lru_cache(maxsize=4096)
def _literal(key: str) -> object:
    try:
        return ast.literal_eval(key)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
