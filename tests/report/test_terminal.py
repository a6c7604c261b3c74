"""The table fits the terminal and agrees with the page; the JSON output has the same numbers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from reading import Page
from recorded import Script, options, view_of, write_run

from steelyard.analysis.notices import ResultWarning
from steelyard.report import as_json, columns, figures, page, terminal_blocks
from steelyard.results.quantities import STEP_TIME


def shown(width):
    """Return the columns that a terminal of this width shows."""
    known = columns.ranked_by(STEP_TIME, "training")
    return [known[place] for place in terminal_blocks.places_that_fit(known, width)]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """Four contenders, two of them with many knobs; none is certified."""
    knobs = ("noise=0.01", "process_noise=0.004", "fake.step_us=10000,10500", "dummy.step_us=12000,15000")
    scripts = {
        "step_us=10000": Script(10.0, passed=None),
        "step_us=10500": Script(10.5, passed=None),
        "step_us=12000": Script(12.0, passed=None),
        "step_us=15000": Script(15.0, passed=None),
    }
    return view_of(write_run(tmp_path_factory.mktemp("runs"), scripts, options(knobs=knobs)))


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_no_line_is_wider_than_the_terminal(recorded_view, uncertified_view, crowd, printed, width):
    for view in (recorded_view, uncertified_view, crowd):
        assert max(len(line.rstrip()) for line in printed(view, width).splitlines()) <= width


def test_a_terminal_and_json_draw_no_figure(recorded_view, printed, monkeypatch):
    def refuse(*_arguments, **_more):
        raise AssertionError("A figure was drawn.")

    monkeypatch.setattr(figures, "frame", refuse)
    assert " first on average" in " ".join(printed(recorded_view, 120).split())
    assert as_json.as_dict(recorded_view)["comparisons"][0]["job_length"]
    with pytest.raises(AssertionError, match="A figure was drawn"):
        page.render(recorded_view)


@pytest.mark.parametrize("width", [80, 120])
def test_numbers_are_never_wrapped_or_truncated(recorded_view, printed, width):
    text = printed(recorded_view, width)
    comparison = recorded_view.comparisons[0]
    assert "…" not in text
    for contender in comparison.contenders:
        for source in contender.speeds:
            for column in shown(width):
                value = column.format(comparison, contender, source)
                assert value.value in text and value.interval in text, column.heading


def test_a_title_and_its_mode_take_two_lines(recorded_view, printed):
    lines = printed(recorded_view, 80).splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("Fake  "))
    assert lines[first + 1].startswith("1.2.3, scripted")
    assert lines[first + 2].startswith("Dummy")


def test_the_same_warning_for_several_contenders_appears_once(crowd, printed):
    text = " ".join(printed(crowd, 120).split())
    assert text.count("No certificate: this number is not proved") == 1
    assert text.count("The numbers are shown but not used in any verdict") == 1
    assert "Fake, step_us 10000 on line:small; Fake, step_us 10500 on line:small; Dummy, step_us 12000" in text


def test_of_many_contenders_with_alike_warnings_the_first_are_named(recorded_view, printed):
    many = [
        ResultWarning("Unsteady", "warning", f"W{place}", f"It may be off by {place} %.", "Wait.") for place in range(9)
    ]
    failed = [ResultWarning("Failed", "warning", f"F{place}", "Failed.", "Look.") for place in range(9)]
    text = " ".join(printed(replace(recorded_view, warnings=(*many, *failed)), 100).split())
    assert "W0; W1; W2; W3 and 5 more: It may be off by 0 to 8 %." in text
    assert "F6; F7; F8: Failed." in text


def test_what_asks_for_nothing_comes_after_the_warnings_and_is_not_counted(recorded_view, printed):
    found = (
        ResultWarning("Failed", "warning", "A", "It failed.", "Look."),
        ResultWarning("InputBound", "note", "B", "It waits.", "Nothing to do."),
        ResultWarning("FasterThanPossible", "error", "C", "It is too fast.", "Invalid."),
    )
    text = " ".join(printed(replace(recorded_view, warnings=found), 100).split())
    assert " 2 warnings " in text
    assert text.index("C: It is too fast.") > text.index("2 warnings")
    assert text.index("A: It failed.") < text.index(" Notes ") < text.index("B: It waits.")
    alone = " ".join(printed(replace(recorded_view, warnings=found[1:2]), 100).split())
    assert "warning" not in alone
    assert " Notes " in alone


def test_an_uncertified_number_is_marked(uncertified_view, printed):
    rows = [line for line in printed(uncertified_view, 80).splitlines() if line.startswith("Dummy  ")]
    assert len(rows) == 2
    assert all("not certified" in row and "REJECTED" in row for row in rows)


def test_page_and_terminal_show_the_same_values(recorded_view, printed):
    found, text = Page(page.render(recorded_view)), printed(recorded_view, 160)
    cells = {cell.words for name in ("span", "a") for cell in found.all(name, class_="value")}
    comparison = recorded_view.comparisons[0]
    for contender in comparison.contenders:
        for source in contender.speeds:
            for column in shown(160):
                value = column.format(comparison, contender, source)
                assert str(value) in cells and value.value in text, column.heading


def test_json_is_strict_and_has_the_same_numbers(recorded_view):
    read = json.loads(json.dumps(as_json.as_dict(recorded_view), allow_nan=False))
    comparison = recorded_view.comparisons[0]
    for contender, stored in zip(comparison.contenders, read["comparisons"][0]["contenders"], strict=True):
        assert stored["title"] == contender.title
        for source, speed in contender.speeds.items():
            assert stored["speeds"][source]["median_ns"] == speed.median_ns
            assert stored["speeds"][source]["location"]["low_ns"] == speed.location.low_ns


def test_json_has_null_where_one_process_has_no_interval(tmp_path, capsys):
    folder = write_run(tmp_path, {"fake": Script(rounds=1), "dummy": Script(rounds=1)})
    as_json.show(view_of(folder))
    read = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert read["comparisons"][0]["contenders"][0]["speeds"]["cached"]["location"]["high_ns"] is None


def test_a_failure_is_shown_with_its_reason(tmp_path, printed):
    scripts = {"fake": Script(), "dummy": Script(rounds=0, failure=("hung", "No event for 600 s."))}
    text = " ".join(printed(view_of(write_run(tmp_path, scripts)), 80).split())
    assert "Dummy: Failed. No event for 600 s." in text


def test_square_brackets_from_the_record_are_not_interpreted(tmp_path, printed):
    scripts = {"fake": Script(), "dummy": Script(passed=False, sentence="[bold]off[/] by [3]")}
    assert "[bold]off[/] by [3]" in printed(view_of(write_run(tmp_path, scripts)), 120)


def test_the_certificate_is_shown_on_the_narrowest_terminal():
    assert "certified" in [column.heading for column in shown(40)]


def test_no_name_is_cut_however_long_its_words(recorded_view, printed):
    (comparison,) = recorded_view.comparisons
    title = "MindSpore 2.10.0, convolution_algorithm_of_another_library_or_none, pynative"
    named = tuple(
        replace(each, title=title, facts=replace(each.facts, maintained=False)) for each in comparison.contenders
    )
    view = replace(recorded_view, comparisons=(replace(comparison, contenders=named),))
    for width in (60, 80):
        text = printed(view, width)
        assert "…" not in text
        assert text.count("pynative") >= 4


def test_an_interval_wider_than_a_factor_of_three_is_not_shown(tmp_path, printed):
    scripts = {
        "fake": Script(10.0, process_scatter=0.4, rounds=3),
        "dummy": Script(10.1, process_scatter=0.4, rounds=3),
    }
    view = view_of(write_run(tmp_path, scripts))
    text = printed(view, 80)
    assert "not enough rounds" in text and "[0" not in text
    words = " ".join(text.split())
    assert words.count("not enough rounds to say how much they differ") == 2, "once for each input"
    assert "As with the verdict, this is not decided." in words
    # The headline has said what the verdict would say; the advice follows it.
    assert "to say how much they differ. Dummy and Fake cannot be told apart" in words
    assert '<ul class="clauses">' not in page.render(view)


def test_a_path_in_a_warning_is_printed_whole_however_narrow_the_terminal_is(tmp_path, printed):
    folder = write_run(tmp_path / ("deep" * 20), {"fake": Script(10.0), "dummy": Script(12.0)})
    broken = next(folder.glob("trials/*fake*")) / "job.json"
    broken.write_text("{")
    assert str(broken.parent) in "".join(line[8:].rstrip() for line in printed(view_of(folder), 60).splitlines())
