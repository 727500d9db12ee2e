"""What a job runs in: a virtual environment or a container, and what is refused instead."""

from __future__ import annotations

import pytest

from fairway.errors import InputError
from fairway.jobs.description import parse_job
from fairway.live.training.start_command import program_of


@pytest.mark.parametrize(
    "image",
    ["python", "python:3.12", "localhost/a_b/c-d:1", "localhost:5000/a/b", "GHCR.io/a/b:X.y", f"a@sha256:{'0' * 64}"],
)
def test_names_of_images_are_taken(image: str) -> None:
    job = parse_job(f"run: x\nenvironment: {{image: '{image}', mounts: [/data]}}", "job.yaml")
    program = program_of(job)
    assert (program.image, program.mounts, program.requirements) == (image, ("/data",), None)
    assert job.document()["environment"] == {"image": image, "mounts": ["/data"]}


@pytest.mark.parametrize(
    "image",
    ["", "Gar bage!!", "docker://a/b", "PyTorch/PyTorch", "a:", "a@sha256:12", "--privileged", "a//b", "x" * 600],
)
def test_what_cannot_be_the_name_of_an_image_is_refused_with_what_would_be(image: str) -> None:
    with pytest.raises(InputError, match=r"environment\.image: .* given, expected the name of a container image"):
        parse_job(f"run: x\nenvironment: {{image: '{image}'}}", "job.yaml")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ("{}", "neither uv nor image given"),
        ("{uv: a, image: b}", "both uv and image given"),
        ("{uv: a, mounts: [/data]}", "only containers have mounts"),
        ("{image: a, mounts: /data}", "expected a list of up to 100 directories"),
        ("{image: a, mounts: [data]}", "expected the whole path of a directory"),
        ("{image: a, mounts: [/]}", "expected the whole path of a directory"),
        ("{imag: a}", "did you mean 'image'"),
    ],
)
def test_half_an_environment_is_refused(environment: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_job(f"run: x\nenvironment: {environment}", "job.yaml")


def test_setup_beside_an_image_is_refused_since_nothing_of_it_would_stay() -> None:
    with pytest.raises(InputError, match=r"setup: given beside environment\.image; put it into the image"):
        parse_job("run: x\nsetup: y\nenvironment: {image: a}", "job.yaml")
