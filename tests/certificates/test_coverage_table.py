"""The table of workloads and frameworks in a document: its rows, its notes, and how it is replaced."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from steelyard.catalog import frameworks, workloads
from steelyard.certificates import coverage


@pytest.fixture
def reduced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> workloads.Workload:
    """A workload that MXNet does not implement and JAX does not support; it is the only one."""
    folder = tmp_path / "resnet18"
    shutil.copytree(workloads.find()["resnet18"].folder, folder)
    (folder / "mxnet.py").unlink()
    spec = folder / "spec.toml"
    spec.write_text(spec.read_text() + '\n[unsupported]\njax = "No such operator."\n')
    found = workloads.parse(spec)
    monkeypatch.setattr(coverage.workloads, "find", lambda: {"resnet18": found})
    return found


def test_a_row_says_what_is_certified_and_the_notes_why_the_rest_is_not(reduced: workloads.Workload) -> None:
    lines = coverage.markdown().splitlines()
    titles = [known.title for known in frameworks.contenders().values()]
    assert lines[0] == f"| workload | presets | {' | '.join(titles)} |"
    assert lines[1] == "|---" * (len(titles) + 2) + "|"
    presets = ", ".join(f"`{name}`" for name in reduced.presets if not name.startswith("tiny-"))
    cells = dict.fromkeys(titles, "certified") | {"JAX": "no", "MXNet": "no"}
    assert lines[2] == f"| `resnet18` | {presets} | {' | '.join(cells[title] for title in titles)} |"
    assert lines[3:] == ["", "JAX and `resnet18`: No such operator.", "", "MXNet and `resnet18`: not implemented"]


def test_a_combination_without_an_implementation_has_no_certificates(reduced: workloads.Workload) -> None:
    cell = coverage.coverage_of([reduced])["resnet18"]["jax"]
    assert (cell.presets, cell.certified) == (tuple(reduced.presets), ())


def test_presets_for_tests_of_single_layers_are_not_listed(
    reduced: workloads.Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    reduced.presets["tiny-other"] = reduced.presets["tiny"]
    assert "tiny-other" not in coverage.markdown()
    assert "`tiny`" in coverage.markdown()


def test_only_the_table_between_its_marks_is_replaced(reduced: workloads.Workload, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        f"Before: é\n{coverage.BEGIN}\nold\ntable\n{coverage.END}\nafter {coverage.END}\n", encoding="utf-8"
    )
    assert coverage.update(path)
    text = path.read_text(encoding="utf-8")
    assert text == f"Before: é\n{coverage.BEGIN}\n{coverage.markdown()}\n{coverage.END}\nafter {coverage.END}\n"
    assert not coverage.update(path)
