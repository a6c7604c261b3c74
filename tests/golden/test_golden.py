"""What is shown of recorded runs of every kind is what is stored; and every change of it would be noticed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import golden_archives
import golden_commands
import golden_pages
import golden_shown
import golden_texts
import pytest

if TYPE_CHECKING:
    from pathlib import Path

ADVICE = (
    "If every difference is meant, write the texts anew with: make golden. Commit them by themselves, with the reason."
)


@pytest.mark.parametrize("kind", golden_archives.kinds())
def test_what_is_shown_is_what_is_stored(kind: str) -> None:
    found = golden_texts.differences(kind, golden_shown.shown(kind))
    assert not found, "\n\n".join(["", *found, ADVICE])


def test_every_kind_has_a_record_and_texts() -> None:
    stored = {path.name for path in golden_texts.EXPECTED.iterdir()}
    assert set(golden_archives.kinds()) == golden_commands.KINDS.keys() == stored


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_texts_do_not_depend_on_the_surroundings(zone: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {
        "TZ": zone,
        "COLUMNS": "33",
        "LC_ALL": "de_DE.UTF-8",
        "FORCE_COLOR": "1",
        "USER": "line",
        "LOGNAME": "line",
        "HOME": str(tmp_path),
        "TERM": "xterm-256color",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path.parent))
    assert golden_texts.differences("damaged", golden_shown.shown("damaged")) == []
    monkeypatch.undo()
    time.tzset()  # what is set for the process stays for the tests after this one


def test_a_difference_names_the_file_and_the_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden_texts, "EXPECTED", tmp_path)
    (tmp_path / "kind").mkdir()
    for name in ("gone.txt", "same.txt", "other.txt"):
        (tmp_path / "kind" / name).write_text("first\nsecond\nthird\n")
    now = {"same.txt": "first\nsecond\nthird\n", "other.txt": "first\nchanged\nthird\n", "new.txt": "added\n" * 99}
    gone, new, other = golden_texts.differences("kind", now)
    assert "stored kind/gone.txt" in gone
    assert new.splitlines()[-1].endswith("more lines")
    assert other.splitlines()[-4:] == [" first", "-second", "+changed", " third"]


PAGE = """<html><head><title>T</title><style>no</style></head><body><h1>One <b>two</b></h1><p>It is<button title="why">here</button>.</p>
<table><caption>C</caption><tr><th>a</th><td><span class="label-in-card">a</span><span>1<small>[0, 2]</small></span></td></tr></table>
<details><summary>More</summary><ul><li>x <a href="#y">y</a></li></ul></details>
<figure><h4>F</h4><div data-figure="f" aria-label="F. Cap"></div></figure>
<script type="application/json" id="figures">[{"name": "f", "data": [{"x": [1.23456, null], "line": {"dash": "dot"}}],
"layout": {"axis": {"title": {"text": "t"}}}}, {"name": "g", "data": [], "layout": {"axis": {"title": {"text": "t"}}}}]</script></body></html>"""


def test_a_page_becomes_its_texts_in_order() -> None:
    assert golden_pages.text_of(PAGE).splitlines() == [
        "[title] T",
        "# One two",
        "It is_here_.",
        "[table] C",
        "a | 1 [0, 2]",
        "  [fold] More",
        "  - x [to #y] y",
        "#### F",
        "[aria-label: F. Cap] [plot f]",
    ]


def test_figures_become_their_properties() -> None:
    assert golden_pages.figures_of(PAGE).splitlines() == [
        "== every figure",
        'layout.axis.title: text "t"',
        "== f",
        "data[0].x = [1.235, null]",
        'data[0].line: dash "dot"',
        "== g",
    ]


def test_many_numbers_are_some_and_their_sum() -> None:
    numbers = [float(place) for place in range(100)]
    short = golden_pages._short(numbers)
    assert short.startswith("100 numbers, sum 4950: 0, 9,")
    numbers[50] += 10
    assert golden_pages._short(numbers) != short


def test_the_same_files_are_packed_into_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden_archives, "RUNS", tmp_path / "runs")
    packed = []
    for name in ("one", "two"):
        (tmp_path / name / "runs").mkdir(parents=True)
        (tmp_path / name / "runs" / "run.json").write_text("{}")
        (tmp_path / name / "runs" / "report.html").write_text(name)
        packed.append(golden_archives.pack(name, tmp_path / name).read_bytes())
    assert packed[0] == packed[1]
    golden_archives.unpack("one", tmp_path / "back")
    assert [path.name for path in (tmp_path / "back").rglob("*") if path.is_file()] == ["run.json"]
