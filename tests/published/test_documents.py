"""The published figures: complete, strict, and equal to the text of the documents where that is at hand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard.plan import studies
from steelyard.published import documents
from steelyard.published.documents import DATA, read
from steelyard.statistics.claims import speed_ratio

DOCUMENTS = documents.documents()
ENTRIES = [(document, entry) for document in DOCUMENTS.values() for entry in document.entries]
VALUES = [(document, entry, value) for document, entry in ENTRIES for value in entry.complete_values]
# Numbers that the documents write as words, or as a product.
WORDS = {
    "twice as fast": 2,
    "seven implementations": 7,
    "three kinds": 3,
    "does not noticeably impact PyTorch": 0,
    "8*256": 2048,
    "80 thousand images": 80000,
    "second epoch": 2,
}
TEXTS = os.environ.get("STEELYARD_TEST_DOCUMENTS", "")


def test_there_are_five_documents_with_all_their_numbers():
    assert {short: len(each.entries) for short, each in DOCUMENTS.items()} == {
        "S0": 14,
        "S1": 49,
        "S2": 19,
        "S3": 14,
        "S4": 14,
    }
    assert len(VALUES) > 300


def test_every_study_that_is_named_is_known():
    _, notes = documents.study_notes()
    named = {study for _, entry in ENTRIES for study in entry.studies}
    assert named <= notes.keys()
    offered = set(studies.all_studies()) & notes.keys()
    assert not [name for name in offered if notes[name].later], "a study that is offered is not left for later"


def test_every_cell_is_a_preset_of_the_catalogue():
    known = {f"{workload.name}:{preset}" for workload in workloads.find().values() for preset in workload.presets}
    used = {cell for _, _, value in VALUES for cell in value.all_cells}
    assert len(used) >= 15
    assert used <= known


def test_every_value_has_a_number_or_the_reason_why_not():
    for _, entry, value in VALUES:
        has_number = value.value is not None or (value.low is not None and value.high is not None)
        without = value.relation in ("not given", "missing", "order", "equal") or entry.id == "table-5"
        assert has_number != without, (entry.id, value)
        assert value.doubtful <= (value.recomputed is not None)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [("S1:table-2", "tensorflow", "pytorch"), ("S0:table-2-ratios", "mindspore", "pytorch")],
)
def test_ratios_follow_from_the_values_beside_them(name, first, second):
    document, entry = documents.find(name)
    source = document.entry(entry.computed_from[0]) if entry.computed_from else entry
    plain = {
        (v.cell, v.framework): v
        for v in source.complete_values
        if v.quantity in ("throughput", "step rate", "training time")
    }
    checked = 0
    for value in entry.complete_values:
        if value.quantity not in ("difference", "ratio") or value.device == "Ascend910":
            continue
        faster = value.faster or value.framework
        rates = {name: plain[value.cell, name].value for name in (first, second)}
        slower = second if faster == first else first
        expected = rates[faster] / rates[slower]
        expected = 1 / expected if plain[value.cell, first].quantity == "training time" else expected
        assert speed_ratio(value.quantity, value.value) == pytest.approx(expected, abs=6e-5), value
        checked += 1
    assert checked == (7 if name == "S1:table-2" else 3)


def test_the_overheads_that_are_called_doubtful_are_those_that_do_not_follow():
    document, overheads = documents.find("S1:table-7-overhead")
    speeds = {(v.cell, v.framework, v.devices): v for v in document.entry("table-7-speed").complete_values}
    for value in overheads.complete_values:
        several = speeds[value.cell, value.framework, value.devices]
        if value.value is None or several.value is None:
            assert value.relation == several.relation == "missing"
            continue
        per_device = several.value / (value.devices if several.unit == "images/s" else 1)
        overhead = 100 * (1 - per_device / speeds[value.cell, value.framework, 1].value)
        assert overhead == pytest.approx(value.recomputed, abs=6e-4)
        assert value.doubtful == (abs(overhead - value.value) > 6e-4), value


# The reader


def altered(tmp_path, old, new):
    path = tmp_path / "altered.toml"
    text = (DATA / "mindspore-vs-pytorch-2022.toml").read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path, text.partition(old)[0].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('where = "section 4.2"\n', "", "'table-2' lacks its source"),
        ("lines = [99, 107]", "lines = [99]", "'table-2' lacks its source"),
        ('kind = "table"', 'kind = "tables"', "'kind' must be one of"),
        (
            'framework = "mindspore", quantity',
            'framwork = "mindspore", quantity',
            "unknown key 'framwork'.* 'framework'",
        ),
        ('relation = "ambiguous"', 'relation = "roughly"', "'values' must be one of"),
        ('from = ["table-2", "table-3"]', "from = []", "lacks 'from' or 'formula'"),
        ('from = ["table-2", "table-3"]', 'from = ["table-9"]', "names 'table-9', which this document does not have"),
        ('setup = ["v100"]', 'setup = ["v200"]', "names 'v200'"),
        ('entries = ["table-4"]', 'entries = ["table-44"]', "'A1' names the entry 'table-44'"),
        ('studies = ["mindspore-training"]', "studies = []", "needs either 'studies' or 'not_redone'"),
        ('check = "differs"', 'check = "wrong"', "'check' must be one of"),
        ("value = 126.87", 'value = "126.87"', "'value' must be a number"),
        ('id = "table-3"', 'id = "table-2"', "two entries are called 'table-2'"),
    ],
)
def test_a_mistake_in_the_data_is_refused(tmp_path, old, new, message):
    path, _ = altered(tmp_path, old, new)
    with pytest.raises(UserError, match=message):
        read(path)


def test_the_message_names_the_line(tmp_path):
    path, line = altered(tmp_path, 'kind = "claim"', 'kind = "claims"')
    with pytest.raises(UserError, match=rf"altered.toml, line {line}: 'kind'"):
        read(path)


@pytest.mark.parametrize(
    ("name", "message"), [("S9:table-1", "no document 'S9'"), ("S0:table-44", "no entry 'table-44'.*'table-4'")]
)
def test_an_unknown_name_is_refused(name, message):
    with pytest.raises(UserError, match=message):
        documents.find(name)


# The documents themselves


@pytest.mark.skipif(not TEXTS, reason="STEELYARD_TEST_DOCUMENTS names no folder with the texts of the documents")
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=list(DOCUMENTS))
def test_every_number_stands_in_the_document(document):
    lines = (Path(TEXTS) / f"{document.id}.txt").read_text(encoding="utf-8").splitlines()
    checked = 0
    for entry in document.entries:
        for value in entry.complete_values:
            if entry.kind == "derived" or not value.printed:
                continue
            first, last = value.lines or entry.lines
            text = " ".join(" ".join(lines[first - 1 : last]).split())
            assert value.printed in text, (entry.id, value.printed)
            numbers = [float(each) for each in re.findall(r"\d+(?:\.\d+)?", value.printed.replace(",", ""))]
            numbers += [WORDS[value.printed]] if value.printed in WORDS else []
            wanted = {each for each in (value.value, value.low, value.high) if each is not None}
            assert wanted <= set(numbers), (entry.id, value)
            assert _in_its_row(entry, value, lines[first - 1 : last]), (entry.id, value)
            checked += 1
    assert checked >= 10
    for source in (*document.setups, *document.errors, *document.left_out, *document.entries):
        if source.lines:
            first, last = source.lines
            assert 1 <= first <= last <= len(lines), source


def _in_its_row(entry, value, lines):
    """Return whether a value of a table stands in a row with its network, where the rows are networks."""
    rows = [line for line in lines if value.network and re.split(r"[\t_]", line)[0].lower() == value.network.lower()]
    if entry.kind != "table" or not rows:
        return True
    return any(value.printed in line for line in rows)
