"""The sections of a run are a list: page, navigation and terminal show what it holds, and a new section is one line in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from reading import Page

from steelyard.report import blocks, page, sections, small_page
from steelyard.report.figures import Figure
from steelyard.report.sections.run_subject import RunSection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.blocks import Block
    from steelyard.report.sections.run_subject import RunSubject


def new(subject: RunSubject) -> Sequence[Block]:
    """Return a section with something for each medium, and a plot."""
    name = subject.view.name
    plot = Figure("new/plot", "A new plot", "It is empty.", [], {"height": 100})
    return [blocks.aside(f"On the page of {name}."), blocks.line(f"On the terminal, {name}."), blocks.Plots([plot])]


@pytest.fixture
def planted(monkeypatch) -> None:
    added = (*sections.OF_RUN, RunSection("A new section", "new", new))
    for module in (sections, page):
        monkeypatch.setattr(module, "OF_RUN", added)


def test_a_section_that_is_added_to_the_list_is_on_page_and_terminal(recorded_view, printed, planted) -> None:
    found = Page(page.render(recorded_view))
    assert [each.attributes["id"] for each in found.all("section") if each.attributes.get("id") == "new"] == ["new"]
    assert "A new section" in [each.words for each in found.all("h2")]
    assert f"On the page of {recorded_view.name}." in found.text()
    assert "On the terminal" not in found.text()
    links = [each.attributes["href"] for each in found.all("a") if each.words == "A new section"]
    assert links == ["#new"]
    assert "new/plot" in found.figures()
    text = printed(recorded_view, 120)
    assert f"On the terminal, {recorded_view.name}." in text
    assert "On the page of" not in text


def test_without_it_nothing_of_it_is_shown(recorded_view, printed) -> None:
    assert "new section" not in Page(page.render(recorded_view)).text()
    assert "On the terminal" not in printed(recorded_view, 120)


def test_every_link_of_the_navigation_leads_to_a_section_of_the_page(recorded_view) -> None:
    found = Page(page.render(recorded_view))
    html = found.html.partition("<nav")[2].partition("</nav>")[0]
    targets = re.findall(r'href="#([^"]+)"', html)
    ids = {each.attributes.get("id") for each in found.all("section")}
    assert len(targets) >= 5
    assert set(targets) <= ids


def test_the_navigation_names_documents_beside_what_they_published() -> None:
    before = [each.anchor for each in sections.navigation(sections.OF_RUN, before=True)]
    after = [each.anchor for each in sections.navigation(sections.OF_RUN, before=False)]
    assert before == ["published", "documents", "search"]
    assert after == ["certificates", "warnings", "setting", "repeat", "glossary"]


def test_a_terminal_shows_what_matters_most_at_the_end() -> None:
    assert [each.anchor for each in sections.on_terminal()][-2:] == ["published", "warnings"]


def test_a_block_that_a_terminal_cannot_show_is_named(recorded_view, printed, monkeypatch) -> None:
    wrong = RunSection("Wrong", "wrong", lambda _: [blocks.Plots([], media=blocks.ON_TERMINAL)])
    monkeypatch.setattr(sections, "OF_RUN", (wrong,))
    with pytest.raises(TypeError, match="cannot show a block of the kind plots"):
        printed(recorded_view, 120)


def test_texts_of_sections_are_escaped_on_every_page() -> None:
    evil = '<script>alert("&")</script>'
    parts = [blocks.Strong(evil), blocks.Small(evil), blocks.Link(evil, evil), blocks.Emphasis(evil), blocks.Code(evil)]
    cell = blocks.Cell(evil, evil)
    shown = [
        blocks.Headline(evil, evil),
        blocks.Paragraph(tuple(parts)),
        blocks.Facts([(evil, tuple(parts))], anchors=[evil]),
        blocks.Table(evil, evil, [blocks.Column(evil)] * 2, [blocks.Row(cell, [cell], below=evil)], cards=True),
        blocks.plain_table(evil, evil, [evil] * 2, [[evil] * 2]),
        blocks.Command(evil),
        blocks.Bullets([tuple(parts)], terms=True),
        blocks.Proofs([blocks.Proof(evil, evil, evil, evil, evil, [])]),
        blocks.Fold(evil, [], evil),
    ]
    section = small_page.PageSection(evil, evil, shown, code=evil)
    html = small_page.render(small_page.SmallPage(evil, evil, evil, evil, shown, [section], ("interval",)))
    assert "<script>alert" not in html
    assert '"#<' not in html
    assert html.count("&lt;script&gt;") > 40
