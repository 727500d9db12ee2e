"""How fast things run: throughput tables, their files, and a built-in catalog."""

from fairway.profiles import catalog
from fairway.profiles.completion import complete
from fairway.profiles.csv_table import format_csv, parse_csv, write_csv
from fairway.profiles.estimator import Colocation, PairEstimate, ThroughputEstimator, sample_references
from fairway.profiles.estimators import ESTIMATORS, Estimator, MatrixCompletion, PairEstimator, estimator_of
from fairway.profiles.files import read_table
from fairway.profiles.gavel_json import parse_gavel_json
from fairway.profiles.tables import IsolatedRate, PairRate, ThroughputTable

__all__ = [
    "ESTIMATORS",
    "Colocation",
    "Estimator",
    "IsolatedRate",
    "MatrixCompletion",
    "PairEstimate",
    "PairEstimator",
    "PairRate",
    "ThroughputEstimator",
    "ThroughputTable",
    "catalog",
    "complete",
    "estimator_of",
    "format_csv",
    "parse_csv",
    "parse_gavel_json",
    "read_table",
    "sample_references",
    "write_csv",
]
