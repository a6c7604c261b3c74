"""The distributions for users: a complete source archive, and a wheel that runs after unpacking."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = {".toml", ".txt", ".sql", ".jinja", ".js", ".css", ".typed"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def unpacked(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_the_source_archive_contains_all_that_a_developer_needs(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "LICENSE",
        "Makefile",
        "README.md",
        "SECURITY.md",
        "mkdocs.yml",
        "docs/methods.md",
        "docs/reference/events.md",
        "examples/vit/spec.toml",
        "tests/conftest.py",
        "benchmarks/__main__.py",
    } <= names


def test_the_wheel_contains_every_file_of_the_packages(unpacked: Path) -> None:
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in DATA | {".py"}]
    missing = [path for path in sources if not (unpacked / path.relative_to(ROOT / "src")).is_file()]
    assert len(sources) > 200
    assert missing == []
    assert list(unpacked.glob("*.dist-info/licenses/LICENSE"))


@pytest.mark.parametrize(
    ("arguments", "expected"), [(["--help"], "usage: steelyard"), (["list", "frameworks"], "PyTorch")]
)
def test_the_unpacked_wheel_runs(unpacked: Path, tmp_path: Path, arguments: list[str], expected: str) -> None:
    found = steelyard(unpacked, tmp_path, *arguments)
    assert expected in found


def test_lists_do_not_show_the_test_frameworks(unpacked: Path, tmp_path: Path) -> None:
    listed = [steelyard(unpacked, tmp_path, "list", what, "--json") for what in ("frameworks", "workloads", "presets")]
    assert not [text for text in listed for name in ("fake", "dummy") if f'"{name}"' in text.lower()]


def steelyard(unpacked: Path, home: Path, *arguments: str) -> str:
    """Run the unpacked command line outside the repository; returns its output."""
    # -S: without the site module, an editable installation of the repository is not found.
    path = os.pathsep.join([str(unpacked), sysconfig.get_path("purelib")])
    environ = {**os.environ, "PYTHONPATH": path, "STEELYARD_CACHE": str(home / "cache"), "STEELYARD_RUNS": str(home)}
    script = f"import sys, steelyard; assert steelyard.__file__.startswith({str(unpacked)!r}), steelyard.__file__; "
    script += "from steelyard.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-S", "-c", script, *arguments]
    done = subprocess.run(command, cwd=home, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
