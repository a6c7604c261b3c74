"""The tables of what each study redoes agree with the data; nothing of a document is left without an answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from steelyard.plan import redone, studies
from steelyard.published.documents import StudyNotes, documents, study_notes

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["README.md", "docs/published.md"])
def test_the_tables_are_up_to_date(name, tmp_path):
    copy = tmp_path / "copy.md"
    shutil.copy(ROOT / name, copy)
    assert not redone.update(copy), f"rebuild them with: python -m steelyard.plan.redone {name}"


def test_every_item_has_a_study_or_a_reason():
    rows = [line for line in redone.items().splitlines() if line.startswith("| ") and not line.startswith("| item")]
    expected = sum(
        len([e for e in each.entries if e.kind != "derived"]) + len(each.left_out) for each in documents().values()
    )
    assert len(rows) == expected > 100
    for row in rows:
        answer = row.rstrip(" |").split(" | ")[-1]
        assert answer.startswith(("`", "None: ")), row


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
    assert first.split(" | ")[1:3] == ["13", "11"]


def test_only_marked_tables_are_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- items: begin -->\nold\n<!-- items: end -->\nafter\n", encoding="utf-8")
    assert redone.update(page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- items: begin -->\n## Xia and Zhou 2022\n")
    assert text.endswith("<!-- items: end -->\nafter\n")
    assert "\nold\n" not in text
    assert not redone.update(page)
