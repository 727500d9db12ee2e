"""Reads a throughput table from a file, whichever of the known formats it has."""

from __future__ import annotations

from pathlib import Path

from fairway.errors import InputError
from fairway.profiles.csv_table import parse_csv
from fairway.profiles.gavel_json import parse_gavel_json
from fairway.profiles.tables import ThroughputTable

_PARSERS = {".json": parse_gavel_json, ".csv": parse_csv}


def read_table(path: Path | str) -> ThroughputTable:
    """Read `.json` as a throughput file of Gavel, `.csv` as plain CSV and any other name by its content."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not text in UTF-8; expected a .csv or .json throughput table") from None
    by_content = parse_gavel_json if text.lstrip().startswith("{") else parse_csv
    return _PARSERS.get(path.suffix.lower(), by_content)(text, str(path))
