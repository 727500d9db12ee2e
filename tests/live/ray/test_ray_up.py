"""`fairway up --backend ray` as people use it, on three nodes without token authentication, while nodes come and go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks._ray_cluster import RayCluster
from tests.cli.installation import Installation, until
from tests.live.training.jobs import COUNTING, GANG, RENDEZVOUS

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, as on Linux"),
    # A pipe whose reader was given up as a test ended is found open when Python next looks for garbage.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

V100 = "ray.io/accelerator-type=V100,fairway.io/accelerators=1,fairway.io/node="


@pytest.fixture(scope="module")
def monkeymodule() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def cluster(monkeymodule: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    with tempfile.TemporaryDirectory(prefix="fw-ray-") as directory, RayCluster(Path(directory)) as ray:
        for name in [name for name in os.environ if name.startswith("RAY_")]:
            monkeymodule.delenv(name)
        monkeymodule.setenv("RAY_AUTH_MODE", "disabled")
        ray.start("head", head=True)
        yield ray


@pytest.fixture(scope="module")
def without_labels(cluster: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of a cluster whose only node has no accelerators."""
    alone = Installation(tmp_path_factory.mktemp("alone"))
    done = alone.in_a_process("up", "--backend", "ray", "--address", cluster.address, "--port", "0")
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


@pytest.fixture(scope="module")
def serving_without_labels(cluster: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same of an application to be served there."""
    alone = Installation(tmp_path_factory.mktemp("alone"))
    target = "tests.live.serving.ray.application"
    done = alone.in_a_process("serve", target, "--no-profile", "--backend", "ray", "--address", cluster.address)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


@pytest.fixture(scope="module")
def live(
    cluster: RayCluster, without_labels: str, serving_without_labels: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    assert without_labels
    assert serving_without_labels
    directory = tmp_path_factory.mktemp("live")
    for node in "ab":
        cluster.start(node, V100 + node)
    backend = f"ray:fence-seconds=1,node-directory={directory / 'nodes'}"
    options = ("--backend", backend, "--address", cluster.address, "--port", "0", "--round", "1s")
    with Installation(directory, *options) as installation:
        installation.up()
        yield installation


def environment_of(pid: int) -> list[bytes]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


def nodes_of(cluster: RayCluster, job: str) -> list[str]:
    """Where processes of a job run."""
    mark = f"FAIRWAY_JOB_ID={job}".encode()
    return [node for node in "ab" if any(mark in environment_of(pid) for pid in cluster.processes(node))]


def counting(
    live: Installation, tmp_path: Path, name: str, steps: int, seconds: float, checkpoint: str = "seconds: 60s"
) -> str:
    script = tmp_path / "counting.py"
    script.write_text(COUNTING)
    (tmp_path / f"{name}.yaml").write_text(
        f"name: {name}\nrun: [{sys.executable}, {script}, '{steps}', '{seconds}', {tmp_path / name}]\nsteps: {steps}\n"
        f"checkpoint: {{interval: 1s, {checkpoint}}}\nresources: {{accelerators: V100}}\n"
    )
    return live.printed("submit", "--quiet", str(tmp_path / f"{name}.yaml")).strip()


def steps_of(trace: Path) -> list[int]:
    return [int(line) for line in trace.read_text().splitlines()] if trace.exists() else []


def test_nodes_without_labels_are_one_line(without_labels: str) -> None:
    assert without_labels.count("\n") == 1
    assert "1 nodes of Ray" in without_labels
    assert "ray.io/accelerator-type" in without_labels


def test_nodes_on_which_nothing_can_be_served_are_one_line(serving_without_labels: str) -> None:
    assert serving_without_labels.count("\n") == 1
    assert "no node of the Ray cluster has an accelerator (" in serving_without_labels


def test_a_type_that_no_node_has_and_a_directory_that_no_node_sees_are_refused(live: Installation) -> None:
    assert "'a100'" in live.refused("submit", "--accelerators", "A100", "--", "true").lower()
    said = live.refused("submit", "--workdir", "/no/such/place", "--", "true")
    assert "/no/such/place" in said
    assert "every node: a, b" in said


def test_a_job_of_a_killed_node_goes_on_elsewhere_from_its_checkpoint(
    live: Installation, cluster: RayCluster, tmp_path: Path
) -> None:
    jobs = [counting(live, tmp_path, name, 250, 0.02) for name in ("one", "two")]
    until(lambda: all(nodes_of(cluster, job) for job in jobs), "for both jobs to run")
    until(lambda: all(len(steps_of(tmp_path / name)) > 80 for name in ("one", "two")), "for checkpoints")
    moved = next(job for job in jobs if nodes_of(cluster, job) == ["b"])
    trace = tmp_path / ("one", "two")[jobs.index(moved)]
    cluster.kill("b")
    reached = steps_of(trace)[-1]
    for job in jobs:
        until(lambda job=job: live.state_of(job) == "succeeded", f"for {job} to end")
        assert f"the sum is {sum(range(250))}" in live.printed("logs", job)
    steps = steps_of(trace)
    again = next(step for before, step in pairwise(steps) if step <= before)
    assert 0 < reached - again <= 150, "no more than what was done since the last checkpoint is done again"
    cluster.start("b", V100 + "b")
    assert nodes_of(cluster, counting_on_both(live, cluster, tmp_path)) == []


def counting_on_both(live: Installation, cluster: RayCluster, tmp_path: Path) -> str:
    """Wait until a node that has come back is used again."""
    jobs = [counting(live, tmp_path, name, 10**6, 0.02) for name in ("three", "four")]
    until(lambda: sorted(nodes_of(cluster, job) for job in jobs) == [["a"], ["b"]], "for both nodes to be used")
    live.printed("cancel", *jobs)
    until(lambda: not any(nodes_of(cluster, job) for job in jobs), "for both to end")
    return jobs[0]


def gang(live: Installation, tmp_path: Path, steps: int) -> str:
    """A gang that needs a worker of each of two nodes; each of its ranks does so many steps."""
    script = tmp_path / "gang.py"
    script.write_text(GANG)
    (tmp_path / "gang.yaml").write_text(
        f"name: gang\nrun: [{sys.executable}, {script}, '{steps}', {tmp_path / 'rank'}]\nsteps: {2 * steps}\n"
        "checkpoint: {interval: 1s}\nresources: {accelerators: V100}\nnum_nodes: 2\n"
    )
    return live.printed("submit", "--quiet", str(tmp_path / "gang.yaml")).strip()


@pytest.mark.soak  # more than a minute; the conformance kit runs gangs on two nodes in every run of the tests
def test_a_gang_runs_on_two_nodes_ends_with_either_and_goes_on_from_what_all_ranks_have_saved(
    live: Installation, cluster: RayCluster, tmp_path: Path
) -> None:
    refused = live.refused("submit", "--accelerators", "V100:2", "--", "true")
    assert "a node of this cluster has at most 1; let it span more nodes, as by 'num_nodes: 2'" in refused
    job = gang(live, tmp_path, 400)
    traces = [tmp_path / "rank0", tmp_path / "rank1"]
    until(lambda: nodes_of(cluster, job) == ["a", "b"], "for both nodes to have a part")
    until(lambda: all(len(steps_of(trace)) > 200 for trace in traces), "for checkpoints")
    cluster.kill("b")
    until(lambda: nodes_of(cluster, job) == [], "for the other part to end as well")
    reached = [steps_of(trace)[-1] for trace in traces]
    cluster.start("b", V100 + "b")
    until(lambda: live.state_of(job) == "succeeded", "for it to go on and end")
    for trace, last in zip(traces, reached, strict=True):
        again = [step for before, step in pairwise(steps_of(trace)) if step <= before]
        assert len(again) <= 1, "it was started once more"
        assert not again or last - again[0] <= 400, "no more than what was done since the last checkpoint is done again"
        assert sorted(set(steps_of(trace))) == list(range(400))
    for rank in range(2):
        assert f"rank {rank} of 2" in live.printed("logs", job, "--rank", str(rank))


def test_the_ranks_of_a_gang_on_two_nodes_meet(live: Installation, cluster: RayCluster, tmp_path: Path) -> None:
    script = tmp_path / "meet.py"
    script.write_text(
        RENDEZVOUS + "print('node', os.environ['FAIRWAY_NODE_RANK'], 'of', os.environ['FAIRWAY_NUM_NODES'])"
    )
    (tmp_path / "meet.yaml").write_text(
        f"run: [{sys.executable}, {script}]\nresources: {{accelerators: V100}}\nnum_nodes: 2\n"
    )
    job = live.printed("submit", "--quiet", str(tmp_path / "meet.yaml")).strip()
    until(lambda: live.state_of(job) == "succeeded", "for both ranks to have met")
    for rank in range(2):
        said = live.printed("logs", job, "--rank", str(rank))
        assert f"met rank {1 - rank}" in said
        assert f"node {rank} of 2" in said


@pytest.mark.skipif(
    subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode != 0,
    reason="only root can give a node other files than those of this machine",
)
def test_a_work_directory_that_a_node_does_not_have_is_sent_there(
    live: Installation, cluster: RayCluster, tmp_path: Path
) -> None:
    workdir = tmp_path / "here" / "project"
    workdir.mkdir(parents=True)
    (workdir / "data.txt").write_text("the data")
    (workdir / "big.bin").write_text("not needed")
    (workdir / "show.sh").write_text("#!/bin/sh\ncat data.txt; echo; ls; pwd\n")
    (workdir / "show.sh").chmod(0o755)
    (workdir / ".fairwayignore").write_text("*.bin\n")
    cluster.kill("b")
    cluster.start("b", V100 + "b", without=tmp_path / "here")
    (tmp_path / "show.yaml").write_text(
        f"run: [./show.sh]\nworkdir: {workdir}\nresources: {{accelerators: V100}}\nnum_nodes: 2\n"
    )
    job = live.printed("submit", "--quiet", str(tmp_path / "show.yaml")).strip()
    until(lambda: live.state_of(job) == "succeeded", "for it to run on both nodes")
    said = sorted(live.printed("logs", job, "--rank", str(rank)) for rank in range(2))
    assert all("the data" in text for text in said)
    assert [str(workdir) + "\n" in text for text in said].count(True) == 1, "the node that has it uses it"
    (sent,) = [text for text in said if "workdirs" in text]
    assert "big.bin" not in sent
    cluster.kill("b")
    cluster.start("b", V100 + "b")


def test_jobs_of_a_node_that_is_drained_save_and_move_before_its_end(
    live: Installation, cluster: RayCluster, tmp_path: Path
) -> None:
    job = counting(live, tmp_path, "noticed", 10**6, 0.02)
    (node,) = until(lambda: nodes_of(cluster, job), "for it to run")
    trace = tmp_path / "noticed"
    until(lambda: len(steps_of(trace)) > 20, "for some steps")
    cluster.drain(node, seconds=60)
    (other,) = until(lambda: [one for one in nodes_of(cluster, job) if one != node], "for it to run elsewhere")
    until(lambda: nodes_of(cluster, job) == [other], "for nothing of it to be left")
    before = len(steps_of(trace))
    until(lambda: len(steps_of(trace)) > before + 20, "for some steps there")
    steps = steps_of(trace)
    assert steps == list(range(len(steps))), "it has saved before it moved: no step is done again"
    cluster.kill(node)
    live.printed("cancel", job)
    cluster.start(node, V100 + node)
    assert nodes_of(cluster, counting_on_both(live, cluster, tmp_path)) == [], "a node that is back is used again"


def test_a_controller_that_was_killed_adopts_what_runs(live: Installation, cluster: RayCluster, tmp_path: Path) -> None:
    job = counting(live, tmp_path, "adopted", 300, 0.02)
    until(lambda: len(steps_of(tmp_path / "adopted")) > 20, "for it to run")
    live.end(signal.SIGKILL)
    (live.home / "address").unlink()
    before = len(steps_of(tmp_path / "adopted"))
    live.up()
    until(lambda: len(steps_of(tmp_path / "adopted")) > before, "for it to go on")
    until(lambda: live.state_of(job) == "succeeded", "for it to end")
    assert steps_of(tmp_path / "adopted") == list(range(300)), "it was never started again"


_REQUESTED = """
import sys
from ray._raylet import GcsClient
from ray.autoscaler.v2.sdk import get_cluster_resource_state
from ray.experimental.internal_kv import _internal_kv_get, _initialize_internal_kv
client = GcsClient(sys.argv[1])
for constraint in get_cluster_resource_state(client).cluster_resource_constraints:
    for one in constraint.resource_requests:
        labels = [(each.label_key, *each.label_values) for each in one.request.label_selectors[0].label_constraints]
        print(one.count, dict(one.request.resources_bundle), labels)
_initialize_internal_kv(client)
print((_internal_kv_get("autoscaler_resource_request") or b"").decode())
"""


def requested(cluster: RayCluster) -> str:
    """What the head says that its autoscaler was asked for, by either of the two ways of Ray's versions of it."""
    done = subprocess.run(
        [sys.executable, "-c", _REQUESTED, cluster.address],
        env={**os.environ, **cluster.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_head_hears_what_the_queue_needs_and_that_it_needs_nothing_any_more(
    live: Installation, cluster: RayCluster, tmp_path: Path
) -> None:
    cluster.start("c", "ray.io/accelerator-type=P100,fairway.io/node=c", gpus=1)
    (tmp_path / "p100.yaml").write_text(
        f"run: [{sys.executable}, -c, 'import time; time.sleep(1000)']\nresources: {{accelerators: P100, cpus: 0.5}}\n"
    )
    jobs: list[str] = []

    def submitted() -> bool:
        done = live.run("submit", "--quiet", str(tmp_path / "p100.yaml"))
        jobs.extend([done.stdout.strip()] if done.exit_code == 0 else [])
        return len(jobs) == 3

    until(submitted, "for the node to be there, and three jobs")
    until(lambda: (said := requested(cluster)).count("GPU") == 3 or said.startswith("3 {"), "for Ray to hear of them")
    live.printed("cancel", *jobs)
    until(lambda: requested(cluster) in {"", "[]"}, "for nothing to be asked for")
    cluster.kill("c")


@pytest.mark.soak  # most of a minute; what is brought and sent is tested on one machine in every run of the tests
def test_a_job_of_a_killed_node_goes_on_elsewhere_from_its_checkpoints_at_a_url(
    live: Installation, cluster: RayCluster, tmp_path: Path
) -> None:
    job = counting(live, tmp_path, "stored", 400, 0.02, checkpoint=f"directory: 'file://{tmp_path}/bucket'")
    (node,) = until(lambda: nodes_of(cluster, job), "for it to run")
    until(lambda: list(tmp_path.glob("bucket/manifest-*")), "for something to be sent while it runs")
    cluster.kill(node)
    reached = len(steps_of(tmp_path / "stored"))
    until(lambda: live.state_of(job) == "succeeded", "for it to go on elsewhere and end")
    assert f"the sum is {sum(range(400))}" in live.printed("logs", job)
    again = steps_of(tmp_path / "stored")[reached]
    assert 0 < again <= reached, "it went on from a checkpoint, and did not begin anew"
    cluster.start(node, V100 + node)


def test_nothing_of_a_job_is_left_where_ray_has_ended(live: Installation, cluster: RayCluster, tmp_path: Path) -> None:
    job = counting(live, tmp_path, "fenced", 10**6, 0.02)
    (node,) = until(lambda: nodes_of(cluster, job), "for it to run")
    os.kill(cluster.raylet(node), signal.SIGKILL)
    until(lambda: node not in nodes_of(cluster, job), "for its processes to be killed")
    until(lambda: nodes_of(cluster, job), "for it to run on the other node")
    live.printed("cancel", job)
    until(lambda: live.state_of(job) == "cancelled", "for it to be cancelled")
    printed = live.end(signal.SIGINT)
    assert printed.rstrip().endswith("stopped"), printed
    left = [pid for pid in cluster.processes("ab".replace(node, "")) if b"agent" in command_of(pid)]
    assert not [pid for pid in left if b"fairway.live" in command_of(pid)]


def command_of(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
