"""Files with one JSON object per line: what fits is read, and everything else is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from steelyard.files import json_lines

if TYPE_CHECKING:
    from pathlib import Path


class Note(TypedDict):
    number: int


def test_objects_come_back_in_order_and_an_incomplete_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    assert json_lines.read(path, Note) == ([], [])
    for number in (1, 2):
        json_lines.append(path, number=number, more="kept")
    with path.open("a") as file:
        file.write('{"number": 3')
    assert json_lines.read(path, Note) == ([{"number": 1, "more": "kept"}, {"number": 2, "more": "kept"}], [])


def test_damaged_lines_are_named_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    lines = (b'{"number": 1}', b"garbage", b"[]", b"{}", b'{"number": "x"}', b"\xff\x00", b"", b'{"number": 2}')
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    found, wrong = json_lines.read(path, Note)
    assert found == [{"number": 1}, {"number": 2}]
    assert [sentence.startswith(f"{path}, line {number}, is damaged") for number, sentence in enumerate(wrong, 2)] == [
        True
    ] * 6
    assert "the line lacks the field 'number'" in wrong[2]
    assert "the line.number must be a whole number, but it is 'x'" in wrong[3]


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").mkdir()
    found, (sentence,) = json_lines.read(tmp_path / "notes.jsonl", Note)
    assert found == []
    assert "notes.jsonl cannot be read (" in sentence
