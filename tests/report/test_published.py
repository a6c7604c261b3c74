"""The page and the table of a study show what was published beside what was measured, from the run's record alone."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from reading import Page
from recorded import Script, view_of, write_run

from steelyard import analysis, report
from steelyard.analysis import published, published_rows
from steelyard.plan.options import Options
from steelyard.published.gathering import gather
from steelyard.published.study_tables import StudyTable
from steelyard.report import as_json, page
from steelyard.report.sections import published as section

ARMS = {"mindspore": "fake", "pytorch": "dummy"}
HELD = (
    StudyTable("S0:table-2", where={"quantity": "training time"}, sides=ARMS, compare=("mindspore", "pytorch")),
    StudyTable("S0:table-2-ratios", where={"device": "V100"}, sides=ARMS),
    StudyTable("S0:table-2", where={"quantity": "accuracy"}, sides=ARMS),
)
STANDS_FOR = {"line:small": "googlenet:cifar10"}


def recorded(root, scripts=None, held=HELD, size="C", **more):
    """A run whose only group stands for GoogLeNet; Fake takes the part of MindSpore, Dummy that of PyTorch."""
    scripts = scripts or {"fake": Script(10.0, process_scatter=0.02), "dummy": Script(12.0)}
    found = gather("mindspore-training", held, size)
    return view_of(write_run(root, scripts, published=found, stands_for=STANDS_FOR, **{"stated": False, **more}))


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("published"))


@pytest.fixture(scope="module")
def rendered(view):
    return Page(page.render(view))


def rows(rendered):
    """Return the texts of the rows of the section on documents."""
    text = rendered.html.partition('<section id="published">')[2].partition("</section>")[0]
    inside = Page(f"<table>{''.join(part for part in text.splitlines(keepends=True))}</table>")
    return [
        row.words for row in inside.all("tr") if "first over second" not in row.words and "network" not in row.words
    ]


def test_the_answer_comes_first(rendered):
    headlines = [each.words for each in rendered.all("p", class_="headline")]
    assert headlines == ["Of 2 published claims measured here: 2 of the same size.", "Fake is the fastest."]
    assert "Same size: Fake over Dummy on line:small." in rendered.text()


def test_published_and_measured_stand_in_one_row(rendered):
    (row,) = [each for each in rows(rendered) if "126.87" in each]
    for part in (
        "Fake over Dummy",
        "GoogleNet googlenet:cifar10",
        "1.198x",
        "126.87(m) against 152(m)",
        "1.2",
        "same size",
        "line:small, batch 16",
    ):
        assert part in row, part


def test_the_interval_is_that_of_the_verdict(view, rendered):
    (verdict,) = view.comparisons[0].rankings["pipeline"].verdicts
    (row, *_) = view.published[0].rows
    assert (row.measured.low, row.measured.high) == pytest.approx((1 / verdict.high, 1 / verdict.low))
    shown = published_rows.ratio(row)
    assert shown.value in rendered.text() and shown.interval in rendered.text()


def test_what_is_not_in_the_run_has_a_row_with_its_reason(rendered):
    (row,) = [each for each in rows(rendered) if "610(h)" in each]
    assert "bert:cn-wiki is not in this run." in row
    assert not any(word in row for word in section.MEANINGS)


def test_the_source_of_every_entry_is_linked(view, rendered):
    targets = {each.attributes["id"] for each in rendered.elements if "id" in each.attributes}
    links = [each for each in rendered.all("a") if each.attributes["href"].startswith("#source-")]
    assert len(links) == len(view.published)
    assert {each.attributes["href"][1:] for each in links} <= targets
    assert links[0].words == "Xia and Zhou 2022, section 4.2, lines 99-107"
    assert links[1].words == "Xia and Zhou 2022, computed from table-2 and table-3, lines 99-107"
    (source,) = [each for each in rendered.all("div") if each.attributes.get("id") == "source-S0-table-2"]
    assert source.words == "table-2 section 4.2, lines 99-107 of the text"


def test_computed_numbers_and_machines_are_named(rendered):
    text = rendered.text()
    assert (
        "The document does not print these ratios. They are computed from its values: slower time / faster time."
        in text
    )
    assert "Their machine: Alibaba Cloud ecs.gn6e-c12g1.3xlarge: one NVIDIA V100" in text
    assert "Measured here: time per step." in text


def test_differences_today_and_errors_of_the_document_are_listed(rendered):
    text = rendered.text()
    assert "MindSpore has no version for NVIDIA GPUs any more." in text
    assert "The losses of the LSTM differ 21-fold at equal accuracy" in text
    assert "81920 MiB" not in text, "an error of another document"


def test_values_that_are_no_ratio_are_shown_and_not_judged(rendered):
    (detail,) = [each.words for each in rendered.all("details") if each.words.startswith("Published values")]
    assert "GoogleNet mindspore accuracy 93% Alibaba Cloud" in detail
    assert not any(word in detail for word in section.MEANINGS)


def test_headings_tables_and_links_keep_the_rules_of_the_page(rendered):
    assert all(cell.attributes.get("scope") in ("col", "row") for cell in rendered.all("th"))
    levels = [int(each.tag[1]) for each in rendered.elements if each.tag in ("h1", "h2", "h3", "h4")]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [each.attributes["id"] for each in rendered.elements if "id" in each.attributes]
    assert len(ids) == len(set(ids))
    assert all((each.attributes.get("href") or "#").startswith("#") for each in rendered.elements)


def test_the_quick_size_says_that_it_measures_dispatch(tmp_path, rendered):
    sentence = "most of the time goes into dispatching operations"
    assert sentence not in rendered.text()
    quick = Page(page.render(recorded(tmp_path, size="Q")))
    assert sentence in quick.text()
    assert quick.all("p", class_="headline")[0].words.startswith("At the quick size of the study: of ")


def test_a_run_without_documents_looks_as_before(recorded_view, printed):
    found = Page(page.render(recorded_view))
    assert "Published" not in found.text()
    assert "published" not in as_json.as_dict(recorded_view)
    assert "Published" not in printed(recorded_view, 120)


@pytest.mark.parametrize(
    ("scripts", "answer", "reason"),
    [
        (
            {"fake": Script(14.0), "dummy": Script(12.0)},
            "Of 2 published claims measured here: 2 in the opposite order.",
            "",
        ),
        ({"fake": Script(6.0), "dummy": Script(12.0)}, "Of 2 published claims measured here: 2 in the same order.", ""),
        (
            {"fake": Script(10.0, passed=False), "dummy": Script(12.0)},
            "Nothing that was published could be held against this run.",
            "Fake is not certified.",
        ),
        (
            {"fake": Script(10.0, rounds=1), "dummy": Script(12.0, rounds=1)},
            "Nothing that was published could be held against this run.",
            "They have fewer than two rounds in common.",
        ),
        (
            {"fake": Script(10.0), "dummy": Script(rounds=0, failure=("crash", "It fell over."))},
            "Nothing that was published could be held against this run.",
            "Dummy failed.",
        ),
    ],
)
def test_the_answer_follows_from_what_was_measured(tmp_path, scripts, answer, reason):
    found = Page(page.render(recorded(tmp_path, scripts)))
    headlines = [each.words for each in found.all("p", class_="headline")]
    assert headlines[-1 if answer.startswith("Nothing") else 0] == answer, "what decides nothing comes last"
    assert reason in found.text()


def test_another_quantity_than_the_ranked_one_is_read_from_the_same_trials(tmp_path):
    held = (StudyTable("S0:table-2-ratios", "first step", where={"device": "V100"}, sides=ARMS),)
    scripts = {"fake": Script(10.0, first_step_ms=50.0), "dummy": Script(9.0, first_step_ms=100.0)}
    (table,) = recorded(tmp_path, scripts, held).published
    assert table.quantity == "first-step time"
    assert table.rows[0].measured.value == pytest.approx(2.0)
    assert table.rows[0].judgement == "same order"


def test_an_unknown_quantity_of_an_altered_record_has_no_rows_of_its_own(tmp_path):
    held = (StudyTable("S0:table-2-ratios", "some quantity", where={"device": "V100"}, sides=ARMS),)
    (table,) = recorded(tmp_path, held=held).published
    assert table.quantity == "some quantity"
    assert {row.judgement for row in table.rows} == {None}


def test_terminal_and_json_have_the_same_rows(view, printed):
    for width in (80, 120):
        text = printed(view, width)
        assert max(len(line.rstrip()) for line in text.splitlines()) <= width
        answer = "Of 2 published claims measured here: 2 of the same size. Not measured here: 4."
        assert answer in " ".join(text.split())
        assert f"here: {published_rows.setting(view.published[0].rows[0])}" in text
        assert "bert:cn-wiki" not in text, "only the page has rows for what was not measured"
        assert "1.198x" in text and published_rows.ratio(view.published[0].rows[0]).interval in text
    found = json.loads(json.dumps(as_json.as_dict(view), allow_nan=False))["published"]
    assert [each["entry"] for each in found] == ["S0:table-2", "S0:table-2-ratios", "S0:table-2"]
    first = found[0]["rows"][0]
    assert first["judgement"] == "same size"
    assert first["sides"] == ["Fake", "Dummy"]
    assert first["published"]["low"] == pytest.approx(1.198, abs=1e-3)


def test_a_page_needs_nothing_but_the_record(view, monkeypatch):
    from steelyard.published import documents

    def refused(*_):
        raise AssertionError("the figures of the package were read")

    monkeypatch.setattr(documents, "read", refused)
    documents.documents.cache_clear()
    again = analysis.view(view.folder)
    assert published.answer(again.published) == published.answer(view.published)
    documents.documents.cache_clear()


def test_texts_of_the_record_are_escaped(tmp_path):
    from dataclasses import replace

    hostile = '<script>alert("&")</script>'
    found = recorded(tmp_path)
    plan = found.record.plan
    tables = tuple(
        replace(each, title=hostile, note=hostile, machine=hostile, cite=hostile) for each in plan.published.tables
    )
    known = replace(
        found.record, plan=replace(plan, published=replace(plan.published, tables=tables, today=(hostile,)))
    )
    sections = tuple(replace(each, published=table) for each, table in zip(found.published, tables, strict=True))
    html = page.render(replace(found, record=known, published=sections))
    assert "<script>alert" not in html
    assert "&lt;script&gt;" in html


def test_a_cell_that_was_skipped_has_its_reason_on_the_page(tmp_path):
    from dataclasses import replace

    from steelyard.plan.run_plan import Skipped
    from steelyard.results import record

    folder = recorded(tmp_path).folder
    plan = record.read(folder).plan
    skipped = (Skipped("bert:cn-wiki,batch=256", "fake", "Fake", "BERT needs 27 GB of memory."),)
    record.update(folder, plan=replace(plan, skipped=skipped))
    (row,) = [each for each in rows(Page(page.render(view_of(folder)))) if "610(h)" in each]
    assert "BERT needs 27 GB of memory." in row


def test_a_times_sign_of_a_documents_source_is_shown_as_one(tmp_path) -> None:
    folder = write_run(
        tmp_path,
        {"pytorch": Script(10.0), "mxnet": Script(12.0)},
        Options(study="lstm-kernels", size="Q", frameworks=("pytorch", "mxnet")),
    )
    page = Page(report.write(view_of(folder)).read_text(encoding="utf-8"))
    words = " ".join(each.words for each in page.all("td"))
    assert "4.14×" in words
    assert "\\times" not in words
