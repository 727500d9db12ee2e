"""Traces of jobs: readers of the public formats, and a generator."""

from fairway.traces.csv_columns import CsvColumns
from fairway.traces.files import FORMATS, TraceReader, parse_trace, read_trace
from fairway.traces.gavel_table import JOB_TABLE, JobType
from fairway.traces.generate import generate
from fairway.traces.generate_options import GeneratorOptions, parse_generate
from fairway.traces.openb import GpuNodes, read_openb_nodes
from fairway.traces.scaling import UNSCALED, Scaling
from fairway.traces.trace import LeftOutError, SkippedRow, Trace, TraceJob

__all__ = [
    "FORMATS",
    "JOB_TABLE",
    "UNSCALED",
    "CsvColumns",
    "GeneratorOptions",
    "GpuNodes",
    "JobType",
    "LeftOutError",
    "Scaling",
    "SkippedRow",
    "Trace",
    "TraceJob",
    "TraceReader",
    "generate",
    "parse_generate",
    "parse_trace",
    "read_openb_nodes",
    "read_trace",
]
