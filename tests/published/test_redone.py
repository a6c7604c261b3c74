"""The tables of what each study redoes agree with the data; nothing of a document is left without an answer."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from steelyard.catalog import frameworks, workloads
from steelyard.plan import studies
from steelyard.published.documents import StudyNotes, documents, study_notes
from steelyard.redone import judgeable
from steelyard.redone import tables as redone

ROOT = Path(__file__).resolve().parents[2]


def test_the_tables_are_up_to_date(tmp_path):
    copy = tmp_path / "copy.md"
    shutil.copy(ROOT / "docs" / "published.md", copy)
    assert all(f"<!-- {name}: begin -->" in copy.read_text(encoding="utf-8") for name in ("documents", "items"))
    assert not redone.update(copy), "write them anew with: make tables"


def test_every_item_has_a_study_or_a_reason():
    rows = [line for line in redone.items().splitlines() if line.startswith("| ") and not line.startswith("| item")]
    expected = sum(
        len([e for e in each.entries if e.kind != "derived"]) + len(each.left_out) for each in documents().values()
    )
    assert len(rows) == expected > 100
    for row in rows:
        who, how = row.rstrip(" |").split(" | ")[-2:]
        assert who.startswith(("`", "None")), row
        assert how.startswith(("Judged at size P", "Shown", "Not redone: ")), row


def test_a_study_that_is_not_offered_says_so(monkeypatch):
    assert "not yet" not in redone.items(), "every study is offered"
    offered = studies.offered()
    everywhere, notes = study_notes()
    later = notes | {"multi-device-speed": StudyNotes(later="it needs several devices")}
    monkeypatch.setattr(redone, "study_notes", lambda: (everywhere, later))
    left_out = {"multi-device-speed", "mindspore-training"}
    monkeypatch.setattr(studies, "offered", lambda: offered.difference(left_out))
    assert "`multi-device-speed` (not yet: it needs several devices)" in redone.items()
    assert "`mindspore-training` (not yet)" in redone.items()
    assert "`multi-device-speed` (not yet)" in redone.summary()
    monkeypatch.setattr(studies, "offered", lambda: frozenset(notes))
    first = next(line for line in redone.summary().splitlines() if line.startswith("| Xia"))
    assert first.split(" | ")[1:6] == ["13", "1", "1", "6", "6"]


def test_the_numbers_of_a_document_are_those_of_its_items():
    for document in documents().values():
        found = redone.counts(document)
        items = [entry for entry in document.entries if entry.kind != "derived"]
        assert found[redone.JUDGED] + found[redone.SHOWN] + found[redone.NOT_REDONE] == len(items) + len(
            document.left_out
        )
        rows = redone.items().partition(f"### {document.cite}\n")[2].partition("\n### ")[0].splitlines()
        for start, number in (("Judged", redone.JUDGED), ("Shown", redone.SHOWN), ("Not redone: ", redone.NOT_REDONE)):
            assert sum(row.rstrip(" |").split(" | ")[-1].startswith(start) for row in rows) == found[number]


def test_what_is_judged_follows_from_the_studies():
    judged, small = judgeable.at_published_size(), judgeable.on_a_small_machine()
    assert {"S1:table-2", "S1:table-7-overhead", "S1:claim-nodes", "S2:figure-1", "S4:figure-2"} <= judged
    assert not {"S0:table-2", "S0:claim-speed-and-accuracy"} & judged, "MindSpore has no back end for the V100's kind"
    assert small == {"S0:claim-static-dynamic", "S4:claim-static-dynamic", "S1:claim-bandwidth"}, "claims of no machine"
    assert small <= judged <= judgeable.held()


def test_what_is_judged_does_not_depend_on_the_cores_of_this_machine(monkeypatch):
    known = judgeable.at_published_size()
    monkeypatch.setattr("steelyard.plan.spreading.usable_cores", lambda: 1)
    judgeable.at_published_size.cache_clear()
    assert judgeable.at_published_size() == known


def test_what_is_judged_does_not_depend_on_the_rights_of_this_user(monkeypatch):
    """Two hosts on one machine need those of root."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    judgeable.on_a_small_machine.cache_clear()
    assert "S1:claim-bandwidth" in judgeable.on_a_small_machine()


def test_a_study_without_the_settings_of_its_document_is_not_counted(monkeypatch):
    """`graph-optimizations` on random batches, as it was."""
    study = studies.study("graph-optimizations")
    random = replace(study, cells=tuple(replace(each, synthetic=True) for each in study.cells))
    monkeypatch.setattr("steelyard.plan.studies.study", lambda _: random)
    monkeypatch.setattr(studies, "all_studies", lambda: {study.name: random})
    judgeable.at_published_size.cache_clear()
    assert judgeable.at_published_size() == set()
    judgeable.at_published_size.cache_clear()


def test_what_no_table_names_has_a_reason_and_nothing_else_has_one():
    """Settings need no table: they stand beside every statement of their document."""
    for document in documents().values():
        for entry in document.entries:
            held = f"{document.short}:{entry.id}" in judgeable.held()
            if entry.kind in ("derived", "settings") or entry.not_redone:
                assert not entry.not_held, entry.id
            else:
                assert held != bool(entry.not_held), entry.id


def test_reasons_are_true_of_this_version():
    reasons = {each.item: each.reason for document in documents().values() for each in document.left_out}
    assert not any(word in item for item in reasons for word in ("olour shift", "data sets", "graph optimisations")), (
        "redone"
    )
    presets = [preset for each in workloads.find().values() for preset in each.presets.values()]
    assert any(preset.data.get("colour_shift") for preset in presets)
    assert frameworks.framework("mxnet").spread("horovod:2"), "it is not only cited"
    assert not any("Horovod on MXNet" in item for item in reasons)


def test_only_marked_tables_are_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- items: begin -->\nold\n<!-- items: end -->\nafter\n", encoding="utf-8")
    assert redone.update(page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- items: begin -->\n### Xia and Zhou 2022\n")
    assert text.endswith("<!-- items: end -->\nafter\n")
    assert "\nold\n" not in text
    assert not redone.update(page)
