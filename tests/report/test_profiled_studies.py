"""Values of profiles beside published ones: shares and counts as they are, times as ratios, and what one process cannot say."""

from __future__ import annotations

import json

import pytest
from reading import Page
from recorded import Script, view_of, write_run

from steelyard import report
from steelyard.analysis import published_rows, shares
from steelyard.plan.options import Options
from steelyard.profiles.quantities import QUANTITIES
from steelyard.report import as_json
from steelyard.report.sections import profile_numbers
from steelyard.statistics.intervals import level_interval

NAMES = ("pytorch", "tensorflow")


def study(root, profiles=None, **scripts):
    """A run of the quick size: Tacotron 2 has a hundred times as many operations per step as VGG16."""
    made = {
        f"{group}/{name}": scripts.get(name, Script(step_ms, rounds=2, operations=operations))
        for group, operations in (("vgg16:tiny", 10), ("tacotron2:tiny", 1000))
        for name, step_ms in (("pytorch", 10.0), ("tensorflow", 12.0))
    }
    wanted = Options(study="gpu-share", size="Q", frameworks=NAMES, profiles=profiles)
    return view_of(write_run(root, made, wanted, stated=False))


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    return study(tmp_path_factory.mktemp("share"))


def rows(view, entry, quantity):
    (table,) = [
        each for each in view.published if each.published.entry == entry and each.published.quantity == quantity
    ]
    return [row for row in table.rows if row.group], table


def test_a_share_is_held_against_the_interval_of_the_same_share(view):
    found, table = rows(view, "S1:table-3", "share in operations")
    assert {(row.group, *row.sides) for row in found} == {
        (group, name) for group in ("vgg16:tiny", "tacotron2:tiny") for name in ("PyTorch", "TensorFlow")
    }
    assert all(row.measured.value == pytest.approx(76.67, abs=0.02) and row.measured.processes == 3 for row in found)
    assert {row.judgement for row in found} == {"other size"}, "no published share is 77 %"
    assert [cells.said for cells in published_rows.cells(table) if cells.setting][:1] == ["99.64 %"]
    assert table.has_levels
    bounds, _ = rows(view, "S1:claim-kernel-share", "share in operations")
    assert {row.judgement for row in bounds} == {"other size"}
    assert {row.group for row in bounds} == {"vgg16:tiny"}


def test_copies_are_above_the_bound(view):
    found, _ = rows(view, "S1:claim-memory-copy", "share of copies")
    assert len(found) == 4
    assert all(row.judgement == "other size" and row.measured.low > 3 for row in found)


def test_times_in_operations_become_ratios_between_the_two(view):
    found, table = rows(view, "S1:table-2-3-kernel-time", "time in operations")
    sides = {row.group: (row.sides, row.measured.value) for row in found}
    assert sides["vgg16:tiny"] == (("TensorFlow", "PyTorch"), pytest.approx(10 / 12, rel=1e-3))
    assert {row.judgement for row in found} == {"opposite order"}, "TensorFlow takes less here in the document"
    assert published_rows.cells(table)[-1].printed == "computed: 1.899 s/step against 2.17 s/step"
    assert not table.has_levels


def test_small_operations_show_in_the_rate(view):
    found, _ = rows(view, "S1:launch-rate", "operations per busy second")
    rates = {(row.group, row.sides[0]): row.measured.value for row in found}
    assert rates["tacotron2:tiny", "PyTorch"] == pytest.approx(rates["vgg16:tiny", "PyTorch"] * 91, rel=0.01)
    assert rates["vgg16:tiny", "PyTorch"] == pytest.approx(11 / 7.667e-3, rel=0.01)


def test_the_page_and_the_table_have_all_numbers_with_their_intervals(view, printed, capsys):
    page = Page(report.write(view).read_text(encoding="utf-8"))
    text = page.text()
    assert "--profiles 3" not in text
    for words in (
        "Profiled steps in numbers",
        "summed share in operations",
        "share in operations 76.7 %",
        "the whole interval is within 10 % of it",
    ):
        assert words in text, words
    assert "on vgg16:tiny: PyTorch 76.7 %, TensorFlow 76.7 %. Operations per second of that time: PyTorch 1,432" in text
    assert "Other size: share in operations of TensorFlow on vgg16:tiny" in text
    assert "3 profiled processes" in text
    assert "Profiled steps in numbers" in printed(view, 160)
    as_json.show(view)
    result = json.loads(capsys.readouterr().out)
    profile = result["comparisons"][0]["contenders"][0]["profile_quantities"]
    assert profile["host gap"]["processes"] == 3
    assert profile["host gap"]["value"] + profile["share in operations"]["value"] == pytest.approx(100)


def test_one_process_is_shown_and_judged_open(tmp_path):
    view = study(tmp_path, profiles=1)
    found, table = rows(view, "S1:table-3", "share in operations")
    assert {row.judgement for row in found} == {"open"}
    assert {str(cells.ratio) for cells in published_rows.cells(table) if cells.setting} == {"76.7 % [one process]"}
    ratios, _ = rows(view, "S1:table-2-3-kernel-time", "time in operations")
    assert {(row.judgement, row.reason) for row in ratios} == {
        (None, "They have fewer than two profiled processes each, so there is no interval.")
    }
    text = Page(report.write(view).read_text(encoding="utf-8")).text()
    assert f"Profile more with: steelyard explain --profiles 3 --run {view.name}" in text


def test_what_was_not_profiled_says_so(tmp_path):
    failing = Script(12.0, rounds=2, profile_failure=("crash", "The process ended."))
    view = study(tmp_path, tensorflow=failing)
    found, _ = rows(view, "S1:table-3", "share in operations")
    assert {(row.sides[0], row.judgement, row.reason) for row in found} == {
        ("PyTorch", "other size", ""),
        ("TensorFlow", None, "It was not profiled."),
    }
    assert all(each.rankings[each.primary].leader for each in view.comparisons), "verdicts stand"
    assert profile_numbers.table(view.comparisons[0])[0] == ["", "PyTorch"]


def test_without_profiles_nothing_is_judged(tmp_path):
    view = study(tmp_path, profiles=0)
    assert not any(row.judgement for table in view.published for row in table.rows)
    assert "Profiled steps in numbers" not in report.write(view).read_text(encoding="utf-8")


def test_an_interval_ends_where_a_share_can():
    found = level_interval([60.0, 99.0])
    assert shares.formatted(QUANTITIES["share in operations"], found).interval.endswith(" 100.0]")
    assert not shares.formatted(QUANTITIES["summed share in operations"], found).interval.endswith(" 100.0]")


def test_a_contender_without_a_certificate_is_held_against_nothing(tmp_path):
    view = study(tmp_path, tensorflow=Script(12.0, rounds=2, passed=False, sentence="It is off."))
    for entry, quantity in (("S1:table-3", "share in operations"), ("S1:table-2-3-kernel-time", "time in operations")):
        found = [row for row in rows(view, entry, quantity)[0] if "TensorFlow" in row.sides]
        assert {(row.measured, row.judgement, row.reason) for row in found} == {
            (None, None, "TensorFlow is not certified.")
        }
