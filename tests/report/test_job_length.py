"""Which contender is done first by the length of the job, on the page, on the terminal and as JSON."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from recorded import Script, options, view_of, write_run

from steelyard.analysis import job_length
from steelyard.report import as_json, page
from steelyard.report.sections.job_length import blocks
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import styles
from steelyard.results import trials
from steelyard.results.job_times import job_time
from steelyard.results.quantities import PEAK_MEMORY
from steelyard.statistics.break_even import BreakEven

QUICK = {"scatter": 0.0, "process_scatter": 0.0}
# What starts at once and is slow; what compiles for 2 seconds and saves 4 ms a step; what compiles and saves nothing.
KNOBS = ("fake.step_us=10000,6000", "dummy.step_us=12000")
SCRIPTS = {
    "step_us=10000": Script(10.0, first_step_ms=10.0, **QUICK),
    "step_us=6000": Script(6.0, first_step_ms=2006.0, **QUICK),
    "dummy": Script(12.0, first_step_ms=1012.0, **QUICK),
}


def section(folder):
    (comparison,) = view_of(folder).comparisons
    return job_length.job_length(comparison)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs"), SCRIPTS, options(knobs=KNOBS))


def test_a_job_costs_its_start_once_and_then_its_steps(folder):
    found = job_time(trials.read(folder / "trials" / next(p.name for p in (folder / "trials").glob("r01*6000*"))))
    assert found.start_ns == pytest.approx((800 + 120 + 2000) * 1e6, rel=1e-6)
    assert found.step_ns == pytest.approx(6e6, rel=1e-6)


def test_the_sentence_names_who_is_done_first_and_the_table_when_a_slow_start_has_paid(folder):
    found = section(folder)
    assert found.sentence == (
        "Done first on average: Fake (step_us 10000) with jobs of up to 500 steps [500, 500], Fake (step_us 6000) with longer ones."
    )
    assert [(pair.later.title, pair.sooner.title, pair.after) for pair in found.pairs] == [
        ("Fake, step_us 6000", "Fake, step_us 10000", "500 steps [500, 500]")
    ]
    assert [steps for steps, _ in found.first] == [1, 501]


def test_whole_epochs_are_named_beside_steps():
    assert job_length._after(BreakEven(500, 400, math.inf, 3), "training", 20) == "500 steps (25 epochs) [400, never]"
    assert job_length._after(BreakEven(math.inf, 400, math.inf, 3), "training", 20) == "never on average [400, never]"


def test_page_terminal_and_json_say_the_same(folder, printed):
    view = view_of(folder)
    text = "When a slow start has paid"
    assert text in page.render(view)
    assert "Done first on average: Fake (step_us 10000) with jobs of up to 500" in " ".join(printed(view, 200).split())
    found = as_json.as_dict(view)["comparisons"][0]["job_length"]
    assert [each["from_steps"] for each in found["first"]] == [1, 501]
    (pair,) = found["pairs"]
    assert pair["later"].endswith("step_us=6000")
    assert pair["break_even"]["steps"] == pytest.approx(500)


def test_a_page_that_ranks_something_else_than_steps_leaves_it_out(folder):
    view = view_of(folder, PEAK_MEMORY)
    assert "By length of the job" not in page.render(view)
    assert as_json.as_dict(view)["comparisons"][0]["job_length"] is None


def test_what_saves_nothing_never_pays(tmp_path):
    scripts = {**SCRIPTS, "step_us=6000": Script(11.0, first_step_ms=2011.0, **QUICK)}
    found = section(write_run(tmp_path, scripts, options(knobs=KNOBS)))
    assert found.sentence == "Fake (step_us 10000) is done first on average, however long the job is."
    assert [pair.after for pair in found.pairs] == ["never: not faster per step"]


@pytest.mark.parametrize("fault", [{"passed": False}, {"passed": None}, {"failure": ("crash", "It ended.")}])
def test_what_is_in_no_verdict_is_in_no_job_length_either(tmp_path, fault):
    scripts = {**SCRIPTS, "step_us=6000": Script(6.0, first_step_ms=2006.0, **QUICK, **fault)}
    found = section(write_run(tmp_path, scripts, options(knobs=KNOBS)))
    assert "6000" not in found.sentence
    assert not found.pairs


def test_one_contender_alone_has_no_such_section(tmp_path):
    scripts = {"fake": SCRIPTS["step_us=10000"], "dummy": Script(12.0, passed=False)}
    assert section(write_run(tmp_path, scripts)) is None


def test_one_round_gives_no_interval(tmp_path):
    scripts = {name: Script(each.step_ms, first_step_ms=each.first_step_ms, rounds=1) for name, each in SCRIPTS.items()}
    found = section(write_run(tmp_path, scripts, options(knobs=KNOBS)))
    assert [pair.after for pair in found.pairs] == ["not enough rounds"]
    assert "[" not in found.sentence


def test_rounds_that_one_contender_did_not_run_count_for_none(tmp_path):
    """Later rounds of what is not decided yet are slower here; mixing them in would move the break-even."""
    few = {
        name: Script(each.step_ms, first_step_ms=each.first_step_ms, rounds=2, **QUICK)
        for name, each in SCRIPTS.items()
    }
    more = few | {"step_us=6000": replace(few["step_us=6000"], rounds=4)}
    both = [
        section(write_run(tmp_path / name, scripts, options(knobs=KNOBS)))
        for name, scripts in (("a", few), ("b", more))
    ]
    assert {pair.found.rounds for each in both for pair in each.pairs} == {2}
    assert both[0].sentence == both[1].sentence


def test_the_caption_names_the_input(folder):
    (comparison,) = view_of(folder).comparisons
    panel, _ = blocks(Subject(comparison, [comparison], styles([comparison])))
    assert any("on the own input pipeline." in str(part) for part in panel.blocks)
