"""The example in the README: lines as they are printed, a small picture, and what disturbed the run."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("picture", ROOT / "tools" / "picture.py")
assert SPEC and SPEC.loader
picture = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(picture)


def note(kept=True, reasons=()):
    return {"kept": kept, "reasons": list(reasons)}


def test_the_lines_are_the_first_six_of_the_table_that_is_printed(recorded_view, printed):
    lines = picture.output_lines(recorded_view)
    text = [line.rstrip() for line in printed(recorded_view, picture.WIDTH).splitlines()]
    start = text.index(lines[0])
    assert lines == text[start : start + 6]
    assert lines[0].startswith("framework ")
    assert "[" in "".join(lines), "an interval"


def test_a_run_without_a_table_is_refused(recorded_view):
    with pytest.raises(RuntimeError, match="has no table of results"):
        picture.output_lines(replace(recorded_view, comparisons=()))


def test_the_caption_counts_disturbed_rounds(recorded_view):
    quiet = replace(recorded_view, disturbances=(note(), note(kept=False, reasons=["x"])))
    assert "disturbed" not in picture.caption(quiet)
    busy = replace(recorded_view, disturbances=(note(), note(reasons=["x"]), note(kept=False, reasons=["x"])))
    assert picture.caption(busy).endswith("Other programs disturbed 1 of its 2 rounds, which widens the intervals.")


def test_the_example_replaces_the_one_before_and_needs_its_marks():
    text = f"before\n{picture.BEGIN}\nold\n{picture.END}\nafter\n"
    assert picture.with_example(text, r"new \1") == f"before\n{picture.BEGIN}\nnew \\1\n{picture.END}\nafter\n"
    with pytest.raises(RuntimeError, match="needs the two marks"):
        picture.with_example("no marks", "new")


def test_the_picture_is_small_and_keeps_its_colours(recorded_view, tmp_path):
    def screenshot(page, into):
        assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
        drawn = Image.new("RGB", picture.PIXELS, "white")
        drawn.paste("red", (10, 10, 40, 40))
        drawn.save(into)

    picture.take_picture(recorded_view, tmp_path / "page.png", screenshot)
    with Image.open(tmp_path / "page.png") as stored:
        assert stored.width == picture.SHOWN_WIDTH
        assert stored.convert("RGB").getpixel((18, 18)) == (255, 0, 0)


def test_a_picture_that_is_too_large_is_not_stored(recorded_view, tmp_path):
    def screenshot(page, into):
        Image.effect_noise(picture.PIXELS, 90).save(into)

    with pytest.raises(RuntimeError, match=r"has \d+ bytes, more than 150000"):
        picture.take_picture(recorded_view, tmp_path / "page.png", screenshot)
    assert not (tmp_path / "page.png").exists()


def test_without_a_browser_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"There is no browser to draw the page\. Install one of: chromium"):
        picture.photograph(tmp_path / "page.html", tmp_path / "page.png")


def test_the_readme_shows_six_lines_the_picture_and_the_machine():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text.partition(picture.BEGIN)[2].partition(picture.END)[0]
    (lines,) = re.findall(r"```\n(.*?)\n```", shown, re.DOTALL)
    assert len(lines.splitlines()) == picture.LINES
    assert "](docs/page.png)" in shown
    assert re.search(r"`steelyard run.*`, \d+ \w+ 20\d\d, \d\d:\d\d .*: .*cores?, ", shown)
