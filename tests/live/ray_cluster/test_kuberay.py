"""The manifest for KubeRay is one that a cluster takes: it fits the schema of the resource, to the last field."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

ROOT = Path(__file__).parents[3]
FIXTURE = json.loads((ROOT / "tests/fixtures/kuberay-raycluster.json").read_text("utf-8"))
SCHEMA = jsonschema_rs.validator_for(FIXTURE["schema"])
CLAIM, CLUSTER = yaml.safe_load_all((ROOT / "examples/kuberay/fairway.yaml").read_text(encoding="utf-8"))


def wrong(manifest: object) -> list[str]:
    return [f"{'.'.join(map(str, error.instance_path))}: {error.message}" for error in SCHEMA.iter_errors(manifest)]


def test_the_manifest_fits_the_schema_of_a_ray_cluster() -> None:
    assert wrong(CLUSTER) == []


def test_every_volume_that_is_mounted_is_there_and_claims_what_the_manifest_makes() -> None:
    spec = CLUSTER["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        volumes = {volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)
        assert set(volumes.values()) == {CLAIM["metadata"]["name"]}
    assert CLAIM["spec"]["accessModes"] == ["ReadWriteMany"], "all nodes write checkpoints"


def test_every_group_can_have_as_many_nodes_as_it_begins_with() -> None:
    for group in CLUSTER["spec"]["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


def _without_quotes(manifest: Any) -> None:
    manifest["spec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] = 0


def _misspelled(manifest: Any) -> None:
    manifest["spec"]["workerGroupSpec"] = manifest["spec"].pop("workerGroupSpecs")


def _no_bound(manifest: Any) -> None:
    del manifest["spec"]["workerGroupSpecs"][0]["maxReplicas"]


def _odd_quantity(manifest: Any) -> None:
    container = manifest["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    container["resources"]["limits"]["memory"] = "8 GB"


@pytest.mark.parametrize("change", [_without_quotes, _misspelled, _no_bound, _odd_quantity])
def test_the_schema_refuses_what_a_cluster_would(change: Callable[[Any], None]) -> None:
    manifest = copy.deepcopy(CLUSTER)
    change(manifest)
    assert wrong(manifest)
