"""A word is given only where a run was measured with a document's settings; otherwise the ratio stands with what differs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from reading import Page
from recorded import Script, options, view_of, write_run

from steelyard.analysis import published
from steelyard.plan import studies
from steelyard.published.gathering import gather
from steelyard.published.study_tables import StudyTable
from steelyard.report import as_json, page
from steelyard.results import record
from steelyard.statistics.conditions import NOT_KEPT, RANDOM, Conditions

ARMS = {"mindspore": "fake", "pytorch": "dummy"}
HELD = (
    StudyTable("S0:table-2", where={"quantity": "training time"}, sides=ARMS, compare=("mindspore", "pytorch")),
    StudyTable("S0:claim-speed-and-accuracy", where={"quantity": "speed"}, sides=ARMS),
)
STANDS_FOR = {"line:small": "googlenet:cifar10"}
SCRIPTS = {"fake": Script(10.0, process_scatter=0.02), "dummy": Script(12.0)}
# The settings of `line:small` in a scripted run.
OWN = Conditions(cells=("line:small",), devices=("cpu",), batches=(16,), precision="float32", data=RANDOM)
DEVICE, SIZE, BATCH = (
    "another kind of device (CPU instead of NVIDIA GPU)",
    "another size of the network (line:small instead of googlenet:cifar10)",
    "batch 16 instead of 128",
)


def gathered(size="P", **own):
    """Return what is published; `own`: the document has the run's settings but for these."""
    found = gather("mindspore-training", HELD, size)
    if not own:
        return found
    said = replace(OWN, **own.get("settings", {}))
    tables = tuple(
        replace(each, statements=tuple(replace(one, conditions=(said,)) for one in each.statements))
        for each in found.tables
    )
    return replace(found, tables=tables)


def viewed(root, known, stands_for=None):
    return view_of(
        write_run(root, SCRIPTS, published=known, stands_for=STANDS_FOR if stands_for is None else stands_for)
    )


def measured(view):
    return [row for table in view.published for row in table.rows if row.measured]


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    return viewed(tmp_path_factory.mktemp("other"), gathered())


def headlines(view):
    return [each.words for each in Page(page.render(view)).all("p", class_="headline")]


def test_a_run_on_a_cpu_gets_no_word_for_a_figure_of_a_gpu(view):
    rows = measured(view)
    assert len(rows) == 2
    for row in rows:
        assert row.differences == (DEVICE, SIZE, BATCH, RANDOM)
        assert (row.judgement, row.measured.value) == (None, pytest.approx(1.2, abs=0.02))


def test_what_has_no_word_is_in_no_headline_and_no_count(view, printed):
    answer = "No published claim gets a word here: this run was measured with other settings than the documents."
    assert headlines(view)[-1] == answer, "what decides nothing comes last"
    assert answer in " ".join(printed(view, 120).split())
    assert not published.documents(view).is_judged
    assert not any(each.startswith("Same size") for each in published.documents(view).clauses)


def test_page_terminal_and_json_say_what_differs(view, printed):
    text = Page(page.render(view)).text()
    assert "; ".join((DEVICE, SIZE, BATCH, RANDOM)) in text
    assert f"{published.RULE}{published.OTHERWISE}" in text
    shown = " ".join(printed(view, 120).split())
    assert "1.20x" in shown and "batch 16 instead of 128" in shown
    (first, *_) = json.loads(json.dumps(as_json.as_dict(view), allow_nan=False))["published"]
    (row, *_) = first["rows"]
    assert row["differences"] == [DEVICE, SIZE, BATCH, RANDOM]
    assert row["judgement"] is None
    assert (row["published_settings"][0]["batches"], row["measured_settings"]["batches"]) == ([128], [16])
    assert row["published_settings"][0]["device_names"] == "NVIDIA V100"
    assert "epochs" in row["published_settings"][0]["assumed"]


@pytest.mark.parametrize("size", ["C", "Q"])
def test_a_small_size_says_so_once_and_not_in_every_row(tmp_path, printed, size):
    found = viewed(tmp_path, gathered(size))
    text = Page(page.render(found)).text()
    assert text.count(f"This size of the study ({size}) has smaller batches, other data or shorter lengths") == 1
    for shown in (text, " ".join(printed(found, 120).split())):
        assert "batch 16 instead of 128" not in shown
    assert measured(found)[0].differences, "JSON has them"


@pytest.mark.parametrize(
    ("settings", "difference"),
    [
        ({}, ""),
        ({"devices": ("cuda",)}, DEVICE),
        ({"batches": (64,)}, "batch 16 instead of 64"),
        ({"precision": "float16"}, "precision float32 instead of float16"),
        ({"data": "cifar10"}, RANDOM),
        ({"sizes": {"features": 9}}, "features 8 instead of 9"),
        ({"cells": ("line:large",)}, "another size of the network (line:small instead of line:large)"),
    ],
)
def test_each_setting_by_itself_forbids_a_word(tmp_path, settings, difference):
    cell = settings.get("cells", ("line:small",))[0]
    known = gathered(settings=settings)
    tables = tuple(
        replace(table, statements=tuple(replace(each, cell=cell) for each in table.statements[:1]))
        for table in known.tables[:1]
    )
    found = viewed(tmp_path, replace(known, tables=tables), {"line:small": cell})
    (row,) = measured(found)
    assert row.differences == ((difference,) if difference else ())
    assert row.judgement == (None if difference else "same size")


def test_a_network_that_the_document_did_not_measure_gets_no_word(tmp_path):
    found = viewed(tmp_path, gathered(), {})
    (row,) = measured(found)
    assert row.statement.cell == ""
    assert row.differences == ("a network that the document did not measure",)


def test_an_older_run_is_read_and_gets_no_word(tmp_path):
    folder = viewed(tmp_path, gathered()).folder
    path = folder / record.FILE
    raw = json.loads(path.read_text(encoding="utf-8"))
    for table in raw["plan"]["published"]["tables"]:
        for statement in table["statements"]:
            for name in ("claim", "conditions", "differs"):
                del statement[name]
    for source in raw["plan"]["published"]["sources"]:
        del source["conditions"]
    path.write_text(json.dumps(raw), encoding="utf-8")
    found = view_of(folder)
    assert {row.differences for row in measured(found)} == {(NOT_KEPT,)}
    text = Page(page.render(found)).text()
    assert NOT_KEPT in text
    assert as_json.as_dict(found)["published"][0]["rows"][0]["judgement"] is None


def test_the_settings_of_a_document_stand_beside_every_statement(view):
    text = Page(page.render(view)).text()
    line = "Document: NVIDIA V100, batch 128, cifar10; assumed: image 224, sgd, learning rate 0.1, momentum 0.9, schedule x0.1 at steps"
    assert line in text
    assert "Document: NVIDIA V100, batch 64, aclimdb; assumed: length 500, sgd" in text, "also of what was not measured"
    folds = [each.words for each in Page(page.render(view)).all("summary")]
    assert {"Settings of Xia and Zhou 2022", "Settings of this run"} <= set(folds)
    assert (
        "Versions: not stated. network device stated assumed not stated googlenet:cifar10 NVIDIA V100 batch 128, cifar10 image 224"
        in text
    )
    assert (
        "line:small Test Processor batch 16, float32, random data, features 8, classes 3, sgd, learning rate 0.1"
        in text
    )


@pytest.mark.parametrize("name", sorted(name for name, study in studies.all_studies().items() if study.published))
def test_every_statement_of_a_study_has_the_documents_settings(name):
    """But for claims of no machine: they are general, and forbid no word."""
    for table in gather(name, studies.all_studies()[name].published, "P").tables:
        for statement in table.statements:
            assert statement.claim
            assert statement.conditions
            general = name in ("static-dynamic", "link-speed")
            assert all(bool(each.devices) != general for each in statement.conditions), table.entry
            if not general:
                assert all(each.batches or "batch" in each.not_stated for each in statement.conditions)


def test_what_is_assumed_is_marked_as_assumed():
    def assumed(entry, cell, name):
        held = (StudyTable(entry, sides={"tensorflow": "tensorflow", "pytorch": "pytorch"}),)
        (table,) = gather("single-gpu-speed", held, "P").tables
        (found,) = {each.assumed for s in table.statements for each in s.conditions if cell in each.cells}
        return name in found

    assert assumed("S1:table-7-single", "gnmt:wmt16", "batches"), "GNMT's batch is lost in the text"
    assert not assumed("S1:table-7-single", "bert:wikitext", "batches")
    assert assumed("S1:table-7-single", "bert:wikitext", "length")
    assert assumed("S2:claim-resnet18-speed", "resnet18:cifar10", "momentum")
    assert not assumed("S2:claim-resnet18-speed", "resnet18:cifar10", "learning_rate")


def test_rows_of_one_claim_are_one_claim(tmp_path):
    """At two batches, the document names none."""
    claim = StudyTable("S0:claim-speed-and-accuracy", where={"quantity": "speed"}, sides=ARMS)
    known = gather("mindspore-training", (claim,), "P")
    (table,) = known.tables
    said = replace(table, statements=(replace(table.statements[0], conditions=(Conditions(),)),))
    scripts = {"batch=32/fake": Script(20.0), "fake": Script(10.0), "dummy": Script(15.0)}
    wanted = options(batches=(16, 32))
    found = view_of(write_run(tmp_path, scripts, wanted, published=replace(known, tables=(said,))))
    assert [row.judgement for row in measured(found)] == ["same order", "opposite order"]
    assert headlines(found)[0] == "Of 1 published claim measured here: 1 different from row to row."
    agreeing = {"fake": Script(10.0), "dummy": Script(15.0)}
    found = view_of(write_run(tmp_path / "b", agreeing, wanted, published=replace(known, tables=(said,))))
    assert len(measured(found)) == 2
    assert headlines(found)[0] == "Of 1 published claim measured here: 1 in the same order."


def test_documents_without_a_number_are_said_to_have_none(tmp_path):
    found = viewed(tmp_path, gather("onnx-exchange", studies.study("onnx-exchange").published, "P"))
    assert headlines(found)[-1] == "The documents print no number that this run could be compared with."
