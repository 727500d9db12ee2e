"""The pinned scenario of six applications as this package's own objects, read from its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairway.configure.application import Application
from fairway.configure.configuration import ConfigurationSpace, Prices
from fairway.configure.platform import Platform, Transfers
from fairway.configure.profile import SyntheticFunction


class Scenario:
    """Applications, platform and arrivals of `esg_scenario.json`, in seconds."""

    def __init__(self, folder: Path, slo: str = "moderate", *, noise: float = 0.0, overhead: float = 0.0) -> None:
        self.document: dict[str, Any] = json.loads((folder / "esg_scenario.json").read_text())
        axes, transfer = self.document["axes"], self.document["transfer"]
        space = ConfigurationSpace(tuple(axes["B"]), tuple(axes["C"]), tuple(axes["G"]))
        functions = self.document["functions"]
        profiles = {
            name: SyntheticFunction(
                each["T"] / 1e3, each["a"], each["phi"], each["beta"], each["gamma"], each["cmax"]
            ).profile(space)
            for name, each in functions.items()
        }
        cluster, prices = self.document["cluster"], self.document["prices"]
        self.invokers: int = cluster["invokers"]
        self.platform = Platform(
            Prices(prices["vcpu_h"], prices["vgpu_h"]),
            Transfers(transfer["local_gb_s"] * 1e9, transfer["remote_gb_s"] * 1e9, transfer["remote_fixed_ms"] / 1e3),
            overhead,
            cluster["vcpu"],
            cluster["vgpu"],
            noise,
        )
        factor = self.document["slo_factor"][slo]
        self.applications = []
        for key, described in enumerate(self.document["apps"]):
            nodes = described["nodes"]
            names = [f"{number} {function}" for number, function in enumerate(nodes)]
            given = dict(zip(names, nodes, strict=True))
            edges = [(names[source], names[target]) for source, target in described["edges"]]
            longest = [functions[function]["T"] / 1e3 for function in nodes]
            application = Application.of(
                {name: profiles[function] for name, function in given.items()},
                edges,
                1.0,
                input_bytes={name: round(functions[function]["input_mb"] * 1e6) for name, function in given.items()},
                name=described["name"],
                key=key,
            )
            end_to_end = application.workflow.critical_path(longest).seconds
            self.applications.append(
                Application(application.workflow, application.profiles, factor * end_to_end, key=key)
            )
