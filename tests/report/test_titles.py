"""The parts of a title and of settings stay whole, also where a value has a comma of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from recorded import Script, options, view_of, write_run

from steelyard.analysis import formatting, headlines, titles
from steelyard.analysis.setting_effects import Effect
from steelyard.plan import resolve
from steelyard.results import record
from steelyard_worker.case import RateSchedule, TensorGroup

OPTIONS = options(frameworks=("fake",), knobs=("fake.step_us=10000,6000",))


def altered(view_folder, value: str) -> None:
    """Set a knob of the recorded contenders to a value, as a framework of one's own may have it."""
    plan = record.read(view_folder).plan
    group = plan.groups[0]
    made = []
    for each in group.variants:
        settings = replace(each.case.settings, knobs=each.case.settings.knobs | {"step_us": value})
        made.append(replace(each, settings=f"step_us {value}", case=replace(each.case, settings=settings)))
    record.update(view_folder, plan=replace(plan, groups=(replace(group, variants=tuple(made)),)))


def test_a_setting_whose_value_holds_a_part_of_the_title_is_shown_whole(tmp_path) -> None:
    folder = write_run(tmp_path, {"fake": Script()}, options(frameworks=("fake",), knobs=("fake.step_us=6000",)))
    altered(folder, "fast, Fake")
    (contender,) = view_of(folder).comparisons[0].contenders
    assert formatting.not_in_title(contender) == "step_us fast, Fake"


def test_a_setting_that_the_title_names_is_not_repeated(tmp_path) -> None:
    folder = write_run(tmp_path, {"fake": Script()}, OPTIONS)
    contenders = view_of(folder).comparisons[0].contenders
    assert {each.title_parts for each in contenders} == {("Fake", "step_us 10000"), ("Fake", "step_us 6000")}
    assert {formatting.not_in_title(each) for each in contenders} == {""}


def test_what_two_contenders_share_is_named_without_their_setting(tmp_path) -> None:
    folder = write_run(tmp_path, {"fake": Script()}, OPTIONS)
    first, second = view_of(folder).comparisons[0].contenders
    named = [replace(each, title_parts=(*each.title_parts, "rate x0.1, warm-up")) for each in (first, second)]
    assert Effect(*named, "step_us").where == "Fake, rate x0.1, warm-up"


def case(**changes: Any):
    found = resolve.plan(OPTIONS).groups[0].cases[0]
    schedule = RateSchedule("step", factor=0.1, unit="epochs", at=(10, 20), warmup=5)
    settings = replace(found.settings, mode="fast", knobs={"layout": "rows, packed", "kernel": "rows"})
    return replace(found, settings=settings, optimizer=replace(found.optimizer, schedule=schedule), **changes)


@pytest.mark.parametrize(
    ("title", "framework", "expected"),
    [
        ("Fake", "Fake", ("Fake",)),
        ("", "Fake", ("",)),
        ("Fake 1.2", "Fake", ("Fake 1.2",)),
        ("Fake, fast", "Fake", ("Fake", "fast")),
        ("Fake, Inc, fast", "Fake, Inc", ("Fake, Inc", "fast")),
        ("Fake, layout rows, packed, kernel rows", "Fake", ("Fake", "layout rows, packed", "kernel rows")),
        (
            "Fake, learning rate x0.1 at epochs 10, 20, warm-up of 5 epochs, ddp:2",
            "Fake",
            ("Fake", "learning rate x0.1 at epochs 10, 20, warm-up of 5 epochs", "ddp:2"),
        ),
        ("Another, of an older record", "Fake", ("Another", "of an older record")),
    ],
)
def test_a_title_is_cut_where_its_parts_end(title: str, framework: str, expected: tuple[str, ...]) -> None:
    found = case(version="1.2" if "1.2" in title else "")
    assert titles.parts(title, framework, found) == expected


def test_settings_are_cut_where_their_values_end() -> None:
    assert titles.settings("kernel rows, layout rows, packed", case()) == ("kernel rows", "layout rows, packed")
    assert titles.settings("", case()) == ()


def test_the_description_of_a_comparison_names_its_groups_of_tensors(tmp_path) -> None:
    folder = write_run(tmp_path, {"fake": Script()}, OPTIONS)
    (comparison,) = view_of(folder).comparisons
    groups = (TensorGroup(("a", "b", "c", "d"), 0.1, 0.0), TensorGroup(("e",), 1.0, 0.5))
    rule = replace(comparison.contenders[0].case.optimizer, groups=groups)
    grouped = [replace(each, case=replace(each.case, optimizer=rule)) for each in comparison.contenders]
    added = headlines.describe(replace(comparison, contenders=grouped)).removeprefix(headlines.describe(comparison))
    assert (
        added == " a, b, c and 1 more: 0.1 times the learning rate and no weight decay. e: 0.5 times the weight decay."
    )
