"""What recordings and their tables have lost in silence: it is read, refused with the right advice, or counted."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import hostile
import pytest
from own_data import error, left_out, spoken

from steelyard.inputs.data import DataRequest, prepare, riff
from steelyard.inputs.data.text_files import lines_of, read_text
from steelyard_worker import tensors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_truncated_wav_is_refused(clips: Path) -> None:
    path = clips / "wavs/4.wav"
    path.write_bytes(path.read_bytes()[:6_000])
    assert error(spoken, clips) == (
        f"{path} is damaged or truncated (its header announces 12,000 bytes of samples, and it holds 5,956); replace it, or "
        "remove it."
    )


@pytest.mark.parametrize("kind", [b"RIFF", b"RIFX", b"RF64"])
def test_the_end_of_samples_is_checked_in_every_kind_of_wav(tmp_path: Path, kind: bytes) -> None:
    order, path = (">" if kind == b"RIFX" else "<"), tmp_path / "a.wav"
    head = kind + bytes(4) + b"WAVE"
    stated = 0xFFFF_FFFF if kind == b"RF64" else 100
    if kind == b"RF64":
        head += b"ds64" + struct.pack("<IQQQI", 28, 0, 100, 50, 0)
    head += b"odd " + struct.pack(f"{order}I", 3) + b"abc\0" + b"data" + struct.pack(f"{order}I", stated)
    path.write_bytes(head + bytes(100))
    riff.check_complete(path)
    path.write_bytes(head + bytes(99))
    assert "announces 100 bytes of samples, and it holds 99" in error(riff.check_complete, path)
    path.write_bytes(head[:12])
    assert "it has no samples" in error(riff.check_complete, path)


def test_a_length_that_a_pipe_could_not_state_is_no_truncation(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF\xff\xff\xff\xffWAVEdata\xff\xff\xff\xff" + bytes(100))
    riff.check_complete(tmp_path / "a.wav")


def test_a_recording_of_another_format_or_with_samples_that_are_no_numbers_is_refused(clips: Path) -> None:
    (clips / "wavs/1.wav").write_bytes(hostile.sound(22_050, form="OGG"))
    assert "1.wav is a recording in the format OGG; convert it to WAV or FLAC." in error(spoken, clips)
    floats = bytearray(hostile.sound(22_050, subtype="FLOAT"))
    floats[-4:] = struct.pack("<f", float("nan"))
    (clips / "wavs/1.wav").write_bytes(floats)
    assert "1.wav has samples that are no numbers, the first at 5,999; replace it" in error(spoken, clips)


def table(root: Path, changes: Callable[[str], str], encoding: str = "utf-8") -> None:
    path = root / "metadata.csv"
    path.write_bytes(changes(path.read_text(encoding="utf-8")).encode(encoding))


def test_a_bar_within_a_text_is_refused_with_its_line(clips: Path) -> None:
    table(clips, lambda text: text.replace("4|raw|Hello there.", "4|Either a|b works|Either a|b works"))
    assert error(spoken, clips).startswith(f"{clips / 'metadata.csv'}, line 5, has 5 fields instead of two or three")


def test_letters_and_digits_without_a_symbol_are_counted(clips: Path) -> None:
    table(
        clips,
        lambda text: text.replace("3|raw|Hello", "3|raw|42 Hello").replace(
            "5|raw|Hello there.", '5|raw|"Hello" caf\u00e9.'
        ),
    )
    assert hostile.changed(spoken(clips).meta) == {
        "texts with letters or digits that have no symbol and are dropped": 1,
        "texts with other characters that have no symbol and are dropped": 1,
    }


@pytest.mark.parametrize("change", ["mark", "crlf", "cr"])
def test_a_byte_order_mark_and_line_ends_change_nothing(clips: Path, change: str) -> None:
    before = tensors.identity(spoken(clips).folder)
    ends = {"mark": "\n", "crlf": "\r\n", "cr": "\r"}[change]
    table(clips, lambda text: text.replace("\n", ends), "utf-8-sig" if change == "mark" else "utf-8")
    os.utime(clips / "metadata.csv", (1, 1))
    assert tensors.identity(spoken(clips).folder) == before


def test_a_line_separator_is_a_character_of_a_line(clips: Path, tmp_path: Path) -> None:
    table(clips, lambda text: text.replace("2|raw|Hello there.", "2|raw|Hello\u2028there.\u0085"))
    found = spoken(clips)
    assert found.meta["train_count"] + found.meta["test_count"] == 8
    (tmp_path / "a").write_bytes("one\u2028\x0b\x1ctwo\r\nthree\n\n".encode())
    assert lines_of(read_text(tmp_path / "a")) == ["one\u2028\x0b\x1ctwo", "three", ""]


def test_every_recording_of_a_table_at_16_khz_has_a_line(tmp_path: Path) -> None:
    (tmp_path / "wavs").mkdir()
    for number in range(7):
        (tmp_path / "wavs" / f"{number}.wav").write_bytes(hostile.sound())
    (tmp_path / "metadata.csv").write_text("".join(f"{number}|HI\n" for number in range(6)))
    found = error(lambda place: prepare(DataRequest("clips-16k", place)), tmp_path)
    assert found.startswith(f"{tmp_path / 'wavs/6.wav'} has no text")


def test_a_second_folder_of_recordings_is_counted(clips: Path) -> None:
    (clips / "flac").mkdir()
    (clips / "flac/0.flac").write_bytes(hostile.sound(22_050, form="FLAC"))
    assert left_out(spoken(clips)) == {"files that are not part of the layout": 1}


def test_lines_without_recordings_are_counted_and_lines_twice_refused(tmp_path: Path) -> None:
    for split in ("train-clean-100", "test-clean"):
        (tmp_path / split / "1/2").mkdir(parents=True)
        (tmp_path / split / "1/2/1-2-0000.flac").write_bytes(hostile.sound(form="FLAC"))
        (tmp_path / split / "1/2/1-2.trans.txt").write_text("\ufeff1-2-0000 ONE\n1-2-0001 TWO\n", encoding="utf-8")
    (tmp_path / "test-clean/3/4").mkdir(parents=True)
    (tmp_path / "test-clean/3/4/3-4.trans.txt").write_text("3-4-0000 ONE\n")
    request = DataRequest("librispeech", tmp_path, {"frames": 100})
    assert list(left_out(prepare(request)).values()) == [2, 1]
    (tmp_path / "test-clean/1/2/1-2.trans.txt").write_text("1-2-0000 ONE\n1-2-0000 TWO\n")
    assert "line 2: '1-2-0000' has a line already" in error(prepare, request)
