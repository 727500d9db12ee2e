"""The built-in catalog: 26 training job types on three accelerator types, for trying things without a profile.

The rates are to four significant digits, from stanford-futuredata/gavel, simulation_throughputs.json, MIT licence, (c)
2020 Stanford Future Data Systems; Narayanan et al., OSDI 2020. They are good for comparing policies, not for predicting
another cluster. Gangs of 2, 4 and 8 are there for the 19 job types that can be distributed; how fast two jobs run
together is known on single workers. A rate of 0 says that the job, or the two together, do not fit in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from types import MappingProxyType

from fairway.cluster import Cluster
from fairway.profiles.csv_table import parse_csv
from fairway.profiles.tables import ThroughputTable

PRICES: Mapping[str, float] = MappingProxyType({"v100": 0.74, "p100": 0.43, "k80": 0.135})
"""Dollars per worker and hour on Google Cloud at the time: the constants of the original."""


@cache
def builtin() -> ThroughputTable:
    """The table of the catalog."""
    file = resources.files("fairway.profiles") / "catalog.csv"
    return parse_csv(file.read_text(encoding="utf-8"), file.name)


def priced(cluster: Cluster) -> Cluster:
    """The cluster with these prices, if it has none of its own and all of its types are known."""
    if cluster.prices or any(name not in PRICES for name in cluster.types):
        return cluster
    return replace(cluster, prices={name: PRICES[name] for name in cluster.types})
