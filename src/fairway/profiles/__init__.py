"""How fast things run: throughput tables, their files, and a built-in catalog."""

from fairway.profiles import catalog
from fairway.profiles.csv_table import format_csv, parse_csv, write_csv
from fairway.profiles.files import read_table
from fairway.profiles.gavel_json import parse_gavel_json
from fairway.profiles.tables import IsolatedRate, PairRate, ThroughputTable

__all__ = [
    "IsolatedRate",
    "PairRate",
    "ThroughputTable",
    "catalog",
    "format_csv",
    "parse_csv",
    "parse_gavel_json",
    "read_table",
    "write_csv",
]
