"""The table of workloads and frameworks: its contents, and that the documentation has the generated table."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.catalog import frameworks, workloads
from steelyard.certificates import coverage, record
from steelyard.certificates.record import Certificate
from steelyard.certificates.sources import implementation_of


@pytest.fixture(autouse=True)
def no_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with an empty cache."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))


PAGE = Path(__file__).parents[2] / "docs" / "workloads.md"


def certificate(workload: workloads.Workload, framework: str, preset: str) -> Certificate:
    """A passed certificate for the files as they are."""
    return Certificate(
        key=f"{workload.name}-{framework}-{preset}",
        passed=True,
        sentence="",
        framework=framework,
        version="1",
        workload=workload.name,
        preset=preset,
        settings={},
        optimizer={},
        declared="",
        references=(),
        agreement=None,
        float64_error=None,
        worst="",
        worst_units=0.0,
        limit=200.0,
        first="",
        stage="",
        tensors=1,
        trainable_scalars=1,
        resolution={},
        losses=(),
        loss_limits=(),
        outputs={},
        output_limits={},
        task="training",
        strategy="single",
        steps=5,
        method=1,
        inputs="",
        specification="",
        implementation=implementation_of(framework, workload.folder, workload.name),
        created="",
    )


def test_only_certificates_of_the_current_files_count() -> None:
    workload = workloads.find()["resnet18"]
    found = certificate(workload, "pytorch", "tiny")
    record.save(found)
    record.save(replace(found, key="older", preset="digits", implementation="of other files"))
    record.save(replace(found, key="rejected", preset="cifar10", passed=False))
    (record.folder() / "damaged.json").write_text("{")
    cells = coverage.coverage_of([workload])["resnet18"]
    assert cells["pytorch"].certified == ("tiny",)
    assert cells["pytorch"].label == f"✓ 1 of {len(workload.presets)}"
    assert cells["jax"].label == f"- 0 of {len(workload.presets)}"


def test_a_combination_that_is_not_implemented_has_a_reason(tmp_path: Path) -> None:
    folder = tmp_path / "resnet18"
    shutil.copytree(workloads.find()["resnet18"].folder, folder)
    (folder / "mxnet.py").unlink()
    spec = folder / "spec.toml"
    spec.write_text(spec.read_text() + '\n[unsupported]\njax = "No such operator."\n')
    cells = coverage.coverage_of([workloads.parse(spec)])["resnet18"]
    assert (cells["jax"].label, cells["jax"].reason) == ("no", "No such operator.")
    assert cells["mxnet"].reason == "The workload's folder has no mxnet.py."


def test_the_documentation_has_the_generated_table(tmp_path: Path) -> None:
    copy = tmp_path / "workloads.md"
    copy.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    assert not coverage.update(copy), "write it anew with: make tables"
    header = next(line for line in copy.read_text(encoding="utf-8").splitlines() if line.startswith("| workload"))
    assert all(f"| {known.title} |" in header for known in frameworks.contenders().values())
