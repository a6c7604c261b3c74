"""Verdict tables as Markdown and LaTeX, read back by their parsers; nothing in a record becomes markup."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import golden_archives
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db
from pylatexenc.latexwalker import LatexEnvironmentNode, LatexWalker

import steelyard
from steelyard.exports import citation, latex, markdown, verdict_texts, writing
from steelyard.results import record

READER = MarkdownIt("commonmark").enable("table")
# Commands of LaTeX itself that the reader does not know.
COMMANDS = {
    "textbar": "|",
    "textmu": "µ",
    "texttimes": "×",
    "textpm": "±",
    "textasciigrave": "`",
    "infty": "∞",
    "geq": "≥",
    "leq": "≤",
    "textless": "<",
    "textgreater": ">",
    "textasciicircum": "^",
    "textasciitilde": "~",
    "textbackslash": "\\",
    "ensuremath": "%s",
}
SYMBOLS = get_default_latex_context_db()
SYMBOLS.add_context_category("signs", [MacroTextSpec(*pair) for pair in COMMANDS.items()], prepend=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=30) | st.sampled_from(
    [
        "- a",
        "---",
        "1. a",
        "1) x",
        "# a",
        "=",
        "| a | b |",
        "`x`",
        "![a](b)",
        "<b>",
        "https://x.y",
        "www.x.y",
        "@somebody",
        "#1",
        "a_b_c",
        "$x$",
        "\\input{x}",
        "\\",
        "%",
        "[x]",
        "\\\\[2cm]",
        "{",
        "}",
        "a\\|b",
        "&amp;",
        "~/x",
        "--x",
        "^^M",
    ]
)


def words(text: str) -> str:
    return " ".join(text.split())


def shown(markup: str) -> str:
    """Return the text of the only paragraph of a page of Markdown, which must have no other markup."""
    tokens = READER.parse(f"x {markup}\n")
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    inner = tokens[1].children or []
    assert {token.type for token in inner} <= {"text", "text_special", "html_inline"}
    assert all(token.content == "<!-- -->" for token in inner if token.type == "html_inline")
    return "".join(token.content for token in inner if token.type != "html_inline").removeprefix("x").strip()


@given(TEXTS)
def test_markdown_shows_any_text_as_it_is(text):
    assert shown(markdown.escaped(text)) == words(text)
    (item,) = [token for token in READER.parse(f"- {markdown.escaped(text)}\n") if token.type == "inline"] or [None]
    assert words(text) == "" or item.level == 3


@given(TEXTS)
def test_a_cell_of_markdown_is_one_cell(text):
    tokens = READER.parse(f"| a | b |\n| --- | --- |\n| {markdown.escaped(text)} | end |\n")
    cells = [tokens[place + 1] for place, token in enumerate(tokens) if token.type == "td_open"]
    assert len(cells) == 2
    assert cells[1].content == "end"


def test_github_links_no_name_and_no_number():
    assert re.search(r"[@#]\w", html.unescape(markdown.escaped("@somebody a@b #1"))) is None
    assert "://" not in markdown.escaped("https://x")


@given(TEXTS)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_latex_prints_any_text_as_it_is(text):
    escaped = latex.escaped(text)
    assert "\n" not in escaped
    nodes, _, _ = LatexWalker(rf"\textbf{{{escaped}}} end").get_latex_nodes()
    back = words(LatexNodes2Text(SYMBOLS, math_mode="text").nodelist_to_text(nodes))
    assert back.endswith("end")
    if not set(text) & set("\"'?!"):  # of which the reader makes curly ones
        assert back.removesuffix("end").strip() == words(latex._one_line(text))


@pytest.mark.parametrize("kind", golden_archives.kinds())
def test_every_kind_has_tables_that_can_be_read(kind, readable):
    for run in readable(kind):
        view = run.view()
        texts = verdict_texts.of_view(view)
        tokens = READER.parse(markdown.text(view))
        rows = sum(len(table.rows) for table in texts.tables)
        assert sum(token.type == "tr_open" for token in tokens) == rows + len(texts.tables)
        assert rows == sum(1 for part in view.comparisons for each in part.contenders for _ in each.standings)
        nodes, _, _ = LatexWalker(latex.text(view), tolerant_parsing=False).get_latex_nodes()
        tables = [each for each in nodes if isinstance(each, LatexEnvironmentNode)]
        assert [each.environmentname for each in tables] == ["table"] * len(texts.tables)
        for table, written in zip(texts.tables, tables, strict=True):
            (inside,) = [each for each in written.nodelist if isinstance(each, LatexEnvironmentNode)]
            assert inside.latex_verbatim().count(r" \\") == len(table.rows) + 1
        assert str(run.folder.parent) not in markdown.text(view) + latex.text(view)


def test_the_tables_say_what_the_page_says(recorded, capsys):
    recorded("training")
    view = steelyard.load("training").view()
    page = markdown.text(view)
    assert "**Fake is the fastest.** Fake is 1.21x \\[1.17, 1.25\\] faster than Dummy." in page
    assert "| Dummy | 1.2.3, scripted | 12.1 ms \\[11.8, 12.3\\] | 1.21x \\[1.17, 1.25\\] | 5 | yes recorded |" in page
    assert "```\nsteelyard run -f fake -f dummy\n```" in page
    assert "- **Machine:** Test Processor, 2 cores, 8 GiB memory" in page
    assert "- **Versions:** Fake 1.2.3, Dummy 1.2.3, steelyard 0.1.0, method 16" in page
    assert r"Dummy & 1.2.3, scripted & 12.1 ms {[}11.8, 12.3{]} & 1.21x {[}1.17, 1.25{]} & 5 & yes recorded \\" in (
        latex.text(view)
    )


def test_another_quantity_and_warnings_are_named(recorded):
    recorded("uncertified")
    run = steelyard.load("uncertified")
    assert "| peak memory | ratio to the least |" in markdown.text(run.view("peak memory"))
    assert "**Warnings**\n\n- Fake on line:small; Dummy on line:small: No certificate" in markdown.text(run.view())
    assert "% Fake on line:small; Dummy on line:small: No certificate" in latex.text(run.view())


def test_what_was_not_measured_is_named(recorded):
    recorded("unavailable")
    view = steelyard.load("unavailable").view()
    left_out = verdict_texts.of_view(view).left_out
    assert left_out
    assert all(markdown.escaped(each) in markdown.text(view) for each in left_out)


def test_a_command_cannot_close_its_block():
    texts = verdict_texts.VerdictTexts("r", [], [], [], [], "steelyard run `\n```` x")
    block = [token for token in READER.parse(markdown.of_texts(texts)) if token.type == "fence"]
    assert [token.content for token in block] == ["steelyard run ` ```` x\n"]


def test_a_run_is_cited(recorded):
    folder = recorded("training") / "training"
    known = record.read(folder)
    entry = citation.bibtex(known, "training")
    assert entry.startswith("@software{steelyard-training,\n")
    for line in (
        "version = {0.1.0}",
        "year = {2026}",
        "title = {{steelyard: Line}}",
        "Run training, method 16; machine 0123456789abcdef",
    ):
        assert line in entry
    study = replace(known.plan.study, title="a { b } \\ % c")
    hostile = citation.bibtex(replace(known, plan=replace(known.plan, study=study)), "a,b{c")
    assert hostile.count("{") == hostile.count("}")
    assert hostile.startswith("@software{steelyard-a-b-c,\n")


def test_json_is_that_of_the_report(recorded, capsys):
    recorded("training")
    from steelyard.cli.main import main

    assert main(["report", "training", "--json"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(writing.text(steelyard.load("training").view(), "json")) == json.loads(printed)
