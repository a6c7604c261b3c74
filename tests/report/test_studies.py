"""Every study: its cells exist at every size, and its quick size gives a page and a table with what was published."""

from __future__ import annotations

import json

import pytest
from reading import Page
from recorded import Script, view_of, write_run

from steelyard import report
from steelyard.inputs.data import training_samples
from steelyard.plan import estimate, resolve, spreading, studies
from steelyard.plan.options import Options
from steelyard.report import as_json

ALL = [(study.name, size) for study in studies.all_studies().values() for size in study.sizes or ("",)]
LONGEST_MINUTES = {"C": 150, "Q": 10}
QUICK = [(name, size) for name, size in ALL if size in ("Q", "")]
SCRIPTS = {
    name: Script(step_ms, rounds=2)
    for name, step_ms in {
        "pytorch": 10.0,
        "tensorflow": 12.0,
        "jax": 9.0,
        "mindspore": 20.0,
        "mxnet": 8.0,
        "onnxruntime": 7.0,
    }.items()
}


@pytest.mark.parametrize(("name", "size"), ALL, ids=lambda each: str(each))
def test_the_cells_of_every_size_exist_and_are_told_apart(name: str, size: str) -> None:
    plan = resolve.plan(Options(study=name, size=size))
    assert len({group.name for group in plan.groups}) == len(plan.groups)
    assert len({group.title for group in plan.groups}) == len(plan.groups)
    assert len(plan.by_id) == len(plan.variants)
    assert all(each.reason for each in plan.skipped)
    found = estimate.estimate(plan, estimate.Known(training_samples()))
    assert 0 < found["rounds"] <= found["most_rounds"]
    assert bool(found["profiles"]) == bool(plan.profiles)


@pytest.mark.parametrize(("name", "size"), [(name, size) for name, size in ALL if size in LONGEST_MINUTES])
def test_the_rounds_that_a_decision_needs_fit_into_the_limit_of_a_size(
    name: str, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two usual cores. A study that stops earlier says of every pair that there were not enough rounds."""
    monkeypatch.setattr(spreading, "usable_cores", lambda: 2)
    plan = resolve.plan(Options(study=name, size=size))
    found = estimate.estimate(plan, estimate.Known(training_samples()))
    assert found["rounds"] <= 60 * plan.minutes <= 60 * LONGEST_MINUTES[size]


@pytest.mark.parametrize(
    ("asked", "digits", "reviews"), [((), (0.9, 0.95, 0.97), (0.75, 0.8, 0.83)), ((0.5,), (0.5,), (0.5,))]
)
def test_each_network_has_thresholds_of_its_own_unless_others_are_asked_for(
    asked: tuple[float, ...], digits: tuple[float, ...], reviews: tuple[float, ...], tmp_path
) -> None:
    wanted = Options(study="time-to-accuracy", size="C", seeds=(1,), frameworks=("pytorch", "jax"), thresholds=asked)
    view = view_of(write_run(tmp_path, SCRIPTS, wanted))
    assert {each.group: each.thresholds for each in view.comparisons} == {
        "resnet18:digits": digits,
        "lstm-imdb:reviews": reviews,
    }


@pytest.mark.parametrize("name", [name for name, size in QUICK if size])
def test_a_study_has_the_three_sizes_the_largest_first(name: str) -> None:
    assert list(studies.study(name).sizes) == ["P", "C", "Q"]


@pytest.mark.parametrize(("name", "size"), QUICK, ids=lambda each: str(each))
def test_the_quick_size_gives_a_page_and_a_table(name: str, size: str, tmp_path, capsys) -> None:
    wanted = Options(study=name, size=size)
    plan = resolve.plan(wanted)
    folder = write_run(tmp_path, SCRIPTS, wanted)
    view = view_of(folder)
    assert [each.group for each in view.comparisons] == [group.name for group in plan.groups]
    page = Page(report.write(view).read_text(encoding="utf-8"))
    assert [each.words for each in page.all("h1")] == [studies.study(name).title]
    headings = " ".join(each.words for each in page.all("h2"))
    for group in plan.groups:
        assert group.title in headings
    held = studies.study(name).published
    assert ("Published and measured" in headings) == bool(held)
    assert len(view.published) == len(held)
    assert ("Profiled steps in numbers" in page.text()) == bool(plan.profiles)
    as_json.show(view)
    result = json.loads(capsys.readouterr().out)
    assert [each["group"] for each in result["comparisons"]] == [group.name for group in plan.groups]
