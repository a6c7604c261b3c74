"""The size of a study is the largest that this machine can measure in an hour; what it cannot measure is a row with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard import feasibility, host
from steelyard.errors import UserError
from steelyard.measure import bandwidth, gemm
from steelyard.plan import estimate, resolve
from steelyard.plan.options import Options

WORKLOADS = str(Path(__file__).resolve().parent.parent / "workloads")
HEADER = 'name = "mine"\ntitle = "Mine"\nquestion = "Which?"\nversion = 1\n'
SIZES = '[sizes.P]\nsummary = "as published"\n[sizes.C]\nsummary = "two cores"\n[sizes.Q]\nsummary = "quick"\n'
CELLS = '[[cells]]\nworkloads = ["{}"]\nframeworks = ["fake"]\nsizes = ["{}"]\nset = ["features={}"]\n'
FITS, TOO_LARGE = 8, 10**13


def options(folder: Path, tables: str, **more: Any) -> Options:
    path = folder / "mine.toml"
    path.write_text(HEADER + SIZES + tables)
    return Options(study=str(path), workload_folders=(WORKLOADS,), **more)


def tables(*features: int) -> str:
    return "".join(CELLS.format("line:small", size, each) for size, each in zip("PCQ", features, strict=True))


def features(plan: Any) -> list[int]:
    return [case.sizes["features"] for group in plan.groups for case in group.cases]


@pytest.mark.parametrize(
    ("widths", "size", "expected"),
    [((9, 8, 7), "P", 9), ((TOO_LARGE, 8, 7), "C", 8), ((TOO_LARGE, TOO_LARGE, 7), "Q", 7)],
)
def test_the_largest_size_that_fits_is_chosen_and_the_reason_is_given(
    widths: tuple[int, int, int], size: str, expected: int, tmp_path: Path
) -> None:
    plan, sentence = feasibility.planned(options(tmp_path, tables(*widths)))
    assert features(plan) == [expected]
    assert sentence.startswith(f"Size {size} is measured")
    assert ("P does not fit this machine (line:small needs about" in sentence) is (size != "P")


@pytest.mark.parametrize("stage", ["certificates", "rounds", "profiles", "graphs", "exchange"])
def test_a_size_of_more_than_an_hour_is_not_chosen_unasked(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seconds(plan: Any, known: estimate.Known) -> dict[str, float]:
        assert known.samples["cifar10"] == 50_000
        hours = {9: 30.0, 8: 0.5, 7: 0.1}[features(plan)[0]]
        return dict.fromkeys(stages, 0.0) | {stage: 3600 * hours}

    stages = estimate.estimate(resolve.plan(Options(workloads=("vgg16:tiny",), frameworks=("pytorch",))))
    monkeypatch.setattr(estimate, "estimate", seconds)
    plan, sentence = feasibility.planned(options(tmp_path, tables(9, 8, 7)))
    assert features(plan) == [8]
    assert sentence == ("Size C is measured, because P would take about 30 hours. Another can be chosen with --size.")
    asked, nothing = feasibility.planned(options(tmp_path, tables(9, 8, 7), size="P"))
    assert (features(asked), nothing) == ([9], "")


def test_the_peak_and_the_bandwidth_that_an_earlier_run_measured_here_decide_the_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    unknown, threads = feasibility.known_here(), host.usable_cores()
    assert unknown == estimate.Known(unknown.samples)
    gemm.add_peak(host.describe().fingerprint(), threads, "float32", "numpy", 40.0 * threads)
    gemm.add_peak("another machine", threads, "float32", "numpy", 999.0)
    assert feasibility.known_here() == estimate.Known(unknown.samples, 40e9)
    gemm.add_peak(host.describe().fingerprint(), threads, bandwidth.KIND, bandwidth.SOURCE, 30.0)
    assert feasibility.known_here() == estimate.Known(unknown.samples, 40e9, 30e9)


def test_a_cell_that_does_not_fit_is_skipped_with_its_reason_and_the_study_goes_on(tmp_path: Path) -> None:
    cells = tables(9, 8, 7) + CELLS.format("line:small", "Q", TOO_LARGE)
    plan, _ = feasibility.planned(options(tmp_path, cells, size="Q"))
    assert features(plan) == [7]
    (skipped,) = plan.skipped
    assert (skipped.group, skipped.environment) == (f"line:small,features={TOO_LARGE}", "fake")
    assert "GiB of memory" in skipped.reason


def test_a_study_of_which_nothing_fits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is nothing to measure: line:small needs about"):
        feasibility.planned(options(tmp_path, tables(9, 8, TOO_LARGE), size="Q"))


def test_a_workload_of_the_study_is_measured_as_the_study_has_it(tmp_path: Path) -> None:
    """Without the study's own tasks and modes, an exported network would be trained."""
    plan, sentence = feasibility.planned(Options(study="onnx-exchange", workloads=("lstm-imdb:tiny",)))
    assert {(case.workload, case.preset, case.task) for group in plan.groups for case in group.cases} == {
        ("lstm-imdb", "tiny", "inference")
    }
    assert "from-pytorch" in {case.settings.mode for group in plan.groups for case in group.cases}
    assert plan.study.name.startswith("onnx-exchange")
    assert sentence == "Size Q is measured, the largest of this study. Another can be chosen with --size."


def test_a_workload_that_the_study_lacks_makes_a_study_of_its_own(tmp_path: Path) -> None:
    plan, sentence = feasibility.planned(
        options(tmp_path, tables(9, 8, 7), workloads=("resnet18:tiny",), frameworks=("pytorch",))
    )
    assert [(case.workload, case.task) for group in plan.groups for case in group.cases] == [("resnet18", "training")]
    assert (plan.study.name, sentence) == ("resnet18", "")
