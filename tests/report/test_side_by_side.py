"""Runs of several machines: each number beside its machine, and no ratio of two machines anywhere."""

from __future__ import annotations

import pytest
from reading import Page, check_policy
from recorded import MACHINE, Script, options, view_of, write_run

from steelyard.analysis import side_by_side
from steelyard.errors import UserError
from steelyard.report import small_page
from steelyard.report.sections import side_by_side as section


def run_on(root, machine, fake=10.0, dummy=12.0, **more):
    """Write a run of a machine and return its view."""
    host = {**MACHINE, "cpu_model": f"Processor {machine}"}
    folder = write_run(
        root / machine,
        {"fake": Script(step_ms=fake), "dummy": Script(step_ms=dummy)},
        machine=machine * 4,
        host=host,
        **more,
    )
    folder = folder.rename(folder.with_name(f"run-{machine}"))
    return view_of(folder)


@pytest.fixture
def views(tmp_path):
    """The views of three machines, of which the last has the other order."""
    return [run_on(tmp_path, "aaaa"), run_on(tmp_path, "bbbb", 20, 30), run_on(tmp_path, "cccc", 12, 10)]


def test_every_machine_has_its_column_and_ratios_are_those_within_it(views) -> None:
    found = side_by_side.side_by_side(views)
    assert found.labels == ["Processor aaaa (aaaaaaaa)", "Processor bbbb (bbbbbbbb)", "Processor cccc (cccccccc)"]
    table = next(each for each in found.tables if each.input == "cached")
    assert [cell.ratio for cell in table.rows["Fake"]] == ["fastest", "fastest", "1.20x"]
    assert [cell.ratio for cell in table.rows["Dummy"]] == ["1.20x", "1.50x", "fastest"]
    assert [cell.value for cell in table.rows["Fake"]] == ["10.00 ms", "20.00 ms", "12.00 ms"]


def test_the_order_is_said_for_machines_and_the_odd_one_is_named(views) -> None:
    for table in side_by_side.side_by_side(views).tables:
        assert table.sentence == (
            "The order of contenders is the same on 2 of 3 machines: Fake, Dummy. On Processor cccc (cccccccc) Dummy is ahead of Fake."
        )


def test_of_several_runs_of_a_machine_the_newest_counts(tmp_path, views) -> None:
    again = run_on(tmp_path / "again", "cccc", created="2099-01-01T00:00:00+00:00")
    found = side_by_side.side_by_side([*views, again])
    assert found.labels[-2:] == ["Processor cccc (cccccccc), run-cccc", "Processor cccc (cccccccc), run-cccc"]
    assert found.tables[0].sentence.startswith("The order of contenders is the same on 3 of 3 machines")


def test_what_differs_between_the_cases_is_named(tmp_path, views) -> None:
    other = write_run(tmp_path / "t", {"fake": Script(), "dummy": Script()}, options(threads=(1,)), machine="d" * 16)
    (table, *_) = side_by_side.side_by_side([views[0], view_of(other)]).tables
    assert table.differing == ["threads: 2, 1"]


def test_a_contender_that_a_run_lacks_has_no_number_and_one_without_a_certificate_no_ratio(tmp_path, views) -> None:
    folder = write_run(tmp_path / "u", {"fake": Script(passed=False)}, machine="e" * 16)
    (table, *_) = side_by_side.side_by_side([views[0], view_of(folder)]).tables
    assert table.rows["Fake"][1].ratio == "not certified"
    assert table.rows["Dummy"][1].value == side_by_side.NOTHING
    assert table.sentence == ""


def test_the_page_has_every_cell_and_says_that_machines_are_not_divided(tmp_path, views) -> None:
    page = Page(small_page.write(section.page(side_by_side.side_by_side(views)), tmp_path / "page.html").read_text())
    check_policy(page, scripts=0)
    text = page.text()
    assert "same on 2 of 3 machines" in text
    assert section.NEVER.split(":")[0] in text
    assert "20.00 ms" in text
    with pytest.raises(UserError, match="cannot be written"):
        small_page.write(section.page(side_by_side.side_by_side(views)), tmp_path / "none" / "page.html")


def test_runs_without_a_common_group_are_refused(tmp_path, views) -> None:
    other = write_run(tmp_path / "b", {"fake": Script(), "dummy": Script()}, options(batches=(8, 4)))
    with pytest.raises(UserError, match="have no group in common"):
        side_by_side.side_by_side([views[0], view_of(other)])
