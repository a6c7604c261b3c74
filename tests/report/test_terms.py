"""A term is explained where it stands and in the glossary, with the same text, for pointer, touch and keyboard."""

from __future__ import annotations

import html

import pytest
from reading import Page
from recorded import Script, view_of, write_run

from steelyard.report import page
from steelyard.report.columns import ranked_by
from steelyard.report.terms import TERMS, anchor, glossary
from steelyard.results.quantities import QUANTITIES, STEP_TIME

FOUND = glossary(STEP_TIME)


@pytest.fixture(scope="module")
def rendered(recorded_view):
    return Page(page.render(recorded_view))


def test_every_term_opens_a_text_that_exists(rendered):
    """A button with a popover works by mouse, touch and keyboard, without JavaScript."""
    texts = {each.attributes["id"]: each.words for each in rendered.all("div", class_="explanation")}
    assert all("popover" in each.attributes for each in rendered.all("div", class_="explanation"))
    buttons = rendered.all("button", class_="term")
    assert {each.attributes["popovertarget"] for each in buttons} <= texts.keys()
    for button in buttons:
        assert button.attributes["title"] in texts[button.attributes["popovertarget"]]
        assert button.attributes["type"] == "button"
    assert len(set(texts)) == len(rendered.all("div", class_="explanation")) == len(FOUND.texts)


def test_the_glossary_has_every_term_in_order_with_the_same_text(rendered):
    (found,) = rendered.all("section", id="glossary")
    expected = "Glossary " + " ".join(f"{name} {text}" for name, text in sorted(FOUND.texts.items()))
    assert found.words == " ".join(expected.split())


@pytest.mark.parametrize("quantity", QUANTITIES.values(), ids=list(QUANTITIES))
def test_every_heading_of_a_column_is_a_term(quantity):
    for task in quantity.tasks:
        headings = {column.heading for column in ranked_by(quantity, task)}
        assert headings | set(TERMS) == set(glossary(quantity, [task]).texts)


def test_headings_and_the_labels_of_cards_are_explained(rendered):
    for holder in (*rendered.all("th", role="columnheader"), *rendered.all("span", class_="label-in-card")):
        assert f'popovertarget="{anchor(holder.words)}"' in rendered.html


def test_the_words_of_the_verdicts_are_explained(tmp_path):
    scripts = {"fake": Script(10.0, process_scatter=0.4), "dummy": Script(10.1, process_scatter=0.4)}
    found = Page(page.render(view_of(write_run(tmp_path, scripts))))
    targets = {each.attributes["popovertarget"] for each in found.all("button", class_="term")}
    assert {
        anchor(name) for name in ("round", "interval", "input pipeline", "protocol", "first step", "trial")
    } <= targets
    assert targets & {anchor("too close to call"), anchor("not enough rounds")}


def test_a_term_is_marked_once_in_a_text_also_in_the_plural():
    marked = FOUND.marked("Three rounds, then another round; a ROUND of 3.")
    assert marked.count("<button") == 1
    assert ">rounds</button>" in marked


def test_options_and_parts_of_words_are_no_terms():
    assert "<button" not in FOUND.marked("Run with --rounds 5, or --interval; a background, surrounding.")


def test_everything_else_is_escaped():
    text = '<img src="x"> & [<b>] `<i>` round'
    marked = str(FOUND.marked(text))
    for tag in ("<img", "<b>", "<i>"):
        assert tag not in marked and html.escape(tag) in marked
    assert '<span class="span">[&lt;b&gt;]</span>' in marked
    assert "<code>&lt;i&gt;</code>" in marked


def test_a_bracket_stays_with_its_term():
    assert '<span class="joined">(<button' in FOUND.marked("yet (not enough rounds).")
