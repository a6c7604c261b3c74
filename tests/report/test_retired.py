"""A retired framework is marked beside its name, and the best maintained one is named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reading import Page
from recorded import Script, view_of, write_run

from steelyard.report import as_json, page
from steelyard.results import record


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    """Fake is the faster one, and retired, as the run's record says."""
    folder = write_run(tmp_path_factory.mktemp("runs"), {"fake": Script(10.0), "dummy": Script(12.0)})
    plan = record.read(folder).plan
    facts = {**plan.frameworks, "fake": replace(plan.frameworks["fake"], maintained=False)}
    record.update(folder, plan=replace(plan, frameworks=facts))
    return view_of(folder)


def test_headline_and_table_of_the_page_mark_it_and_name_the_best_maintained_one(view):
    found = Page(page.render(view))
    assert found.all("p", class_="headline")[0].words == (
        "Fake (retired) is the fastest. Of the maintained ones, Dummy is the fastest."
    )
    rows = [each.words for each in found.all("th", role="rowheader")]
    assert sum("Fake (retired)" in row for row in rows) == 2
    assert not [row for row in rows if "Dummy (retired)" in row]


def test_the_terminal_marks_it_too(view, printed):
    text = printed(view, 80)
    assert text.count("\nFake (retired)  ") == 2
    assert "Fake (retired) is the fastest. Of the maintained ones, Dummy" in " ".join(text.split())


def test_json_says_so(view):
    contenders = as_json.as_dict(view)["comparisons"][0]["contenders"]
    assert {each["title"]: each["maintained"] for each in contenders} == {"Fake": False, "Dummy": True}
