"""What is computed otherwise on purpose is shown with its reason, in no verdict, and its curves are marked."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from reading import Page
from recorded import Script, view_of, write_run

from steelyard.analysis import measured_groups
from steelyard.report import page
from steelyard.report.plots import losses
from steelyard.report.styles import styles
from steelyard.results import record

SENTENCE = "Wrong on purpose: the loss is a sum, as in that program."


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    """Dummy, the faster one, is wrong on purpose."""
    folder = write_run(tmp_path_factory.mktemp("runs"), {"fake": Script(10.0), "dummy": Script(5.0)})
    proofs = record.read_certificates(folder)
    (wrong,) = [each.case.id for each in record.read(folder).plan.variants if each.case.framework == "dummy"]
    proofs[wrong] = {"passed": False, "sentence": SENTENCE, "on_purpose": "wrong on purpose"}
    (folder / record.CERTIFICATES).write_text(json.dumps(proofs))
    return view_of(folder)


def test_its_row_says_so_and_it_is_in_no_verdict_and_no_warning(view):
    (comparison,) = view.comparisons
    assert all(len(ranking.order) == 1 for ranking in comparison.rankings.values())
    found = Page(page.render(view))
    rows = [each.words for each in found.all("tr") if each.words.startswith("Dummy") or "Dummy" in each.words[:12]]
    assert any("wrong on purpose" in row for row in rows)
    assert any(SENTENCE in each.words for each in found.all("p"))
    assert not [warning for warning in view.warnings if warning.name == "NotCertified"]


def test_statements_of_documents_do_not_mean_it(view):
    (comparison,), (group,) = view.comparisons, view.record.plan.groups
    assert [each.title for each in measured_groups.measured(comparison, group).contenders] == ["Fake"]


def test_its_curve_is_marked(view):
    (comparison,) = view.comparisons
    figure = losses.figure(comparison, styles(view.comparisons))
    assert {trace["name"] for trace in figure.data} == {"Fake", "Dummy (wrong on purpose)"}


def test_curves_of_a_group_that_is_apart_are_not_said_to_coincide(view):
    (comparison,) = view.comparisons
    own = replace(comparison, apart="Its masks are its own.")
    caption = losses.figure(own, styles(view.comparisons)).caption
    assert "Here they part from the first step on. Its masks are its own." in caption
    assert "Here they part" not in losses.figure(comparison, styles(view.comparisons)).caption
