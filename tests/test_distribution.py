"""The wheel and the sdist, built and tried outside the clone: nothing that runs is left out of either."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    to = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(to)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(to.glob("*.whl")), next(to.glob("*.tar.gz"))


def test_the_wheel_works_outside_the_clone(built: tuple[Path, Path], tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home)
    packages = home / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    with zipfile.ZipFile(built[0]) as wheel:
        wheel.extractall(packages)
    # What it depends on is taken from where the tests run, behind the wheel itself.
    others = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "others.pth").write_text("\n".join(others))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    problem = {"workers": {"v100": 1}, "jobs": [{"id": "a", "throughputs": {"v100": 4.0}}]}

    def fairway(*words: str) -> str:
        command = [str(home / "bin" / "python"), "-m", "fairway.cli.main", *words]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            input=json.dumps(problem),
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = subprocess.run(
        [str(home / "bin" / "python"), "-c", "import fairway; print(fairway.__file__)"],
        cwd=tmp_path, env=environment, text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert where.stdout.startswith(str(packages))
    assert fairway("--version").startswith("fairway ")
    assert json.loads(fairway("allocate", "-", "--policy", "fifo"))["allocation"][0]["shares"] == {"v100": 1.0}
    assert built[0].name.startswith("fairway-")
    assert "-py3-none-any" not in built[0].name
    without = (
        "import sys; sys.modules['numba'] = None; from fairway.compiled import how; import fairway.place.fits as f; "
    )
    how = subprocess.run(
        [str(home / "bin" / "python"), "-c", without + "print(how(f.best_fit))"],
        cwd=tmp_path, env=environment, text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert how.stdout == "ahead\n"
    assert "wrote my_policy.py" in fairway("new", "policy", "my-policy")
    assert json.loads(fairway("allocate", "-", "--policy", "my_policy:MyPolicy"))["objective"] == 1.0


def test_the_sdist_has_the_code_the_tests_and_the_documentation(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in (
        "src/fairway/cli/templates/policy.py.txt",
        "tests/test_api.py",
        "docs/index.md",
        "pyproject.toml",
        "hatch_build.py",
        "LICENSE",
    ):
        assert needed in names
