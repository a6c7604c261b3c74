"""The table of workloads and frameworks: what it says, and that the README's copy is the one that is generated."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.catalog import frameworks, workloads
from steelyard.certificates import coverage as census
from steelyard.certificates import record
from steelyard.certificates.record import Certificate
from steelyard.certificates.sources import implementation_of


@pytest.fixture(autouse=True)
def no_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with a cache of one's own, in which nothing is kept yet."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))


README = Path(__file__).parents[2] / "README.md"


def certificate(workload: workloads.Workload, framework: str, preset: str) -> Certificate:
    """A passed certificate for the files as they are."""
    return Certificate(
        key=f"{workload.name}-{framework}-{preset}", passed=True, sentence="", framework=framework, version="1",
        workload=workload.name, preset=preset, settings={}, optimizer={}, declared="", references=(), agreement=None,
        exact=None, worst="", worst_units=0.0, limit=200.0, first="", stage="", tensors=1, trainable_scalars=1,
        resolution={}, steps=5, method=1, inputs="", specification="",
        implementation=implementation_of(framework, workload.folder, workload.name), created="",
    )  # fmt: skip


def test_a_cell_is_certified_only_by_the_files_as_they_are_now() -> None:
    workload = workloads.find()["resnet18"]
    found = certificate(workload, "pytorch", "tiny")
    record.save(found)
    record.save(replace(found, key="older", preset="digits", implementation="of other files"))
    record.save(replace(found, key="rejected", preset="cifar10", passed=False))
    (record.folder() / "damaged.json").write_text("{")
    cells = census.take([workload])["resnet18"]
    assert cells["pytorch"].certified == ("tiny",)
    assert cells["pytorch"].said == f"✓ 1 of {len(workload.presets)}"
    assert cells["jax"].said == f"- 0 of {len(workload.presets)}"


def test_a_cell_that_cannot_be_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "resnet18"
    shutil.copytree(workloads.find()["resnet18"].folder, folder)
    (folder / "mxnet.py").unlink()
    spec = folder / "spec.toml"
    spec.write_text(spec.read_text() + '\n[unsupported]\njax = "No such operator."\n')
    cells = census.take([workloads.parse(spec)])["resnet18"]
    assert (cells["jax"].said, cells["jax"].reason) == ("cannot", "No such operator.")
    assert cells["mxnet"].reason == "There is no mxnet.py in its folder."


def test_the_readme_holds_the_table_that_is_generated(tmp_path: Path) -> None:
    copy = tmp_path / "README.md"
    copy.write_text(README.read_text(encoding="utf-8"), encoding="utf-8")
    assert not census.renew(copy), "make it anew with: python -m steelyard.certificates.coverage README.md"
    header = next(line for line in copy.read_text(encoding="utf-8").splitlines() if line.startswith("| workload"))
    assert all(f"| {known.title} |" in header for known in frameworks.contenders().values())
