"""The words that podman is given, and which images are refused at the door."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from fairway.errors import InputError
from fairway.live.backend.commands import JobProgram
from fairway.live.local import images
from fairway.live.local.container import Container, devices_of
from fairway.live.local.programs import refuse_what_cannot_run


def test_variables_are_passed_by_name_but_for_those_that_podman_reads_itself() -> None:
    container = Container("x:1", "fairway-job", surroundings={"PATH": "/usr/bin", "HOME": "/root", "AGENT": "1"})
    words, environment = container.running(
        0, "python x.py", {"KEY": "secret", "PATH": "/opt/bin", "LD_PRELOAD": "/opt/x.so", "RANK": "0"}, "/work"
    )
    assert "secret" not in " ".join(words)
    assert {"--env=KEY", "--env=RANK", "--env=PATH=/opt/bin", "--env=LD_PRELOAD=/opt/x.so"} <= set(words)
    assert environment == {"PATH": "/usr/bin", "HOME": "/root", "AGENT": "1", "KEY": "secret", "RANK": "0"}
    assert words[-4:] == ["x:1", "sh", "-c", "python x.py"]
    assert container.running(0, ["python", "x.py"], {}, None)[0][-3:] == ["x:1", "python", "x.py"]


@pytest.mark.parametrize(
    ("device", "passed"),
    [
        (None, []),
        ("GPU-8a5d", ["--device=nvidia.com/gpu=GPU-8a5d"]),
        ("MIG-41f2", ["--device=nvidia.com/gpu=MIG-41f2"]),
        ("0", ["--device=/dev/kfd", "--device=/dev/dri"]),
    ],
)
def test_each_rank_gets_its_own_device(device: str | None, passed: list[str]) -> None:
    container = Container("x", "y", devices=[devices_of("GPU-other"), devices_of(device)])
    words, _ = container.running(1, "true", {}, None)
    assert [word for word in words if word.startswith("--device=")] == passed


def test_a_mount_keeps_commas_and_quotes_and_the_pipes_of_mps_are_mounted() -> None:
    container = Container("x", "y", mounts=['/work, "a"', "/data"])
    words, _ = container.running(0, "true", {"CUDA_MPS_PIPE_DIRECTORY": "/run/mps"}, None)
    mounts = [next(csv.reader([word.removeprefix("--mount=")])) for word in words if word.startswith("--mount=")]
    assert mounts == [
        ["type=bind", f"source={one}", f"destination={one}"] for one in ('/work, "a"', "/data", "/run/mps")
    ]


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of answers that a `podman` gives: files `image` and `manifest`, with a code and a line each."""
    script = f'#!/bin/sh\n. {tmp_path}/"$1"\n[ -z "$said" ] || echo "$said" >&2\nexit $code\n'
    for name in ("podman", "crun"):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(images, "_INITS", ("/bin/sh",))
    return tmp_path


def refusal(image: str, **fields: str) -> str:
    with pytest.raises(InputError) as refused:
        refuse_what_cannot_run(JobProgram(run="no-such-command-outside", image=image, **fields))
    return str(refused.value)


def test_an_image_that_is_here_or_that_a_registry_has_is_taken(answers: Path) -> None:
    (answers / "image").write_text("code=0")
    refuse_what_cannot_run(JobProgram(run="no-such-command-outside", image="mine"))
    (answers / "image").write_text("code=1")
    (answers / "manifest").write_text("code=0")
    refuse_what_cannot_run(JobProgram(run="no-such-command-outside", image="docker.io/library/python:3.12"))


def test_an_image_that_cannot_be_had_is_refused_with_what_podman_says(answers: Path) -> None:
    (answers / "image").write_text("code=1")
    (answers / "manifest").write_text("code=125; said='Error: reading image: no such host'")
    assert refusal("docker.io/no/one:1") == (
        "environment.image: 'docker.io/no/one:1' is not on this machine and cannot be had: reading image: no such "
        "host; correct the name, or have it here by 'podman load'"
    )
    assert "there is no such image on this machine; give its whole name with the registry" in refusal("nothing")
    (answers / "image").write_text("code=125; said='Error: cannot re-exec process'")
    assert "podman cannot look for images on this machine: cannot re-exec process" in refusal("nothing")


def test_without_podman_or_its_parts_an_image_is_refused(answers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (answers / "image").write_text("code=0")
    assert (
        refusal("mine", workdir="/")
        == "workdir: '/' given, which would hide all of the image; give a directory below it"
    )
    assert "environment.mounts: '/no/such' is not a directory of this machine" in refusal("mine", mounts=("/no/such",))
    monkeypatch.setattr(images, "_INITS", ())
    assert "'catatonit' that podman begins containers with is not on this machine" in refusal("mine")
    (answers / "crun").unlink()
    monkeypatch.setenv("PATH", str(answers))
    assert "the program 'crun' is not on this machine; install it" in refusal("mine")
    (answers / "podman").unlink()
    assert "the program 'podman' is not on this machine; install it" in refusal("mine")
