"""What people's own data has lost in silence, case by case: it is read, refused with the right advice, or counted."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
from typing import TYPE_CHECKING, Any

import hostile
import numpy as np
import official_layouts as layouts
import pytest
from PIL import Image

from steelyard.cli.main import main
from steelyard.errors import UserError
from steelyard.inputs import case_inputs, data
from steelyard.inputs.data import DataRequest, inspect, pictures, prepare, riff
from steelyard.inputs.data.inventory import refuse
from steelyard.inputs.data.text_files import lines_of, read_text
from steelyard.inputs.data.work import READINGS
from steelyard_worker import tensors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PICTURE_OPTIONS = {"resize": 20, "crop": 16}
SMALL_TEXT = {"vocabulary": 20, "length": 8}
SMALL_LANGUAGE = {"vocabulary": 100, "length": 16, "masked": 2}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for split in ("train", "val"):
        for name in ("cat", "dog"):
            (tmp_path / "imagenet" / split / name).mkdir(parents=True)
            for number in range(2):
                (tmp_path / "imagenet" / split / name / f"{number}.png").write_bytes(hostile.picture())
    return tmp_path / "imagenet"


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    root = tmp_path / "LJSpeech-1.1"
    (root / "wavs").mkdir(parents=True)
    for number in range(8):
        (root / "wavs" / f"{number}.wav").write_bytes(hostile.sound(22_050))
    (root / "metadata.csv").write_text("".join(f"{number}|raw|Hello there.\n" for number in range(8)), encoding="utf-8")
    return root


def images(root: Path) -> data.Prepared:
    return prepare(DataRequest("imagenet", root, PICTURE_OPTIONS))


def spoken(root: Path) -> data.Prepared:
    return prepare(DataRequest("ljspeech", root, {"frames": 100, "mels": 16}))


def left_out(prepared: data.Prepared) -> dict[str, int]:
    return {reason: tally["count"] for reason, tally in prepared.meta["left_out"].items()}


def error(make: Callable[[Any], object], place: Any) -> str:
    with pytest.raises(UserError) as found:
        make(place)
    return str(found.value)


def test_grey_of_16_bits_is_scaled_and_counted(photos: Path) -> None:
    values = np.linspace(30_000, 50_000, 24 * 20).reshape(20, 24).astype(np.uint16)
    Image.fromarray(values).save(photos / "train/cat/0.png")
    found = images(photos)
    arrays = tensors.read(found.folder)
    row = int(np.flatnonzero(arrays["position/train"] == 0)[0])
    assert 116 <= arrays["train/image"][row].min() <= arrays["train/image"][row].max() <= 195
    assert hostile.changed(found.meta) == {pictures.SCALED: 1}
    exact, _ = pictures.decode_picture((photos / "train/cat/0.png").read_bytes(), "L", "here")
    np.testing.assert_array_equal(np.asarray(exact), np.round(values / 257))


def test_pictures_that_are_not_read_are_counted_by_reason(photos: Path) -> None:
    (photos / "train/cat/2.bmp").write_bytes(hostile.picture(form="BMP"))
    (photos / "train/cat/3.webp").write_bytes(hostile.picture(form="WEBP"))
    (photos / "train/dog/studio").mkdir()
    (photos / "train/dog/studio/9.png").write_bytes(hostile.picture())
    (photos / "train/9.png").write_bytes(hostile.picture())
    (photos / "notes.txt").write_text("mine")
    found = images(photos)
    only = "as only .jpg, .jpeg and .png are read"
    assert left_out(found) == {
        f".bmp files, {only}": 1, f".webp files, {only}": 1, "files in subfolders of class folders": 1,
        "files outside of class folders": 1, "files that are not part of the layout": 1,
    }  # fmt: skip
    assert found.meta["train_count"] == 4
    assert (
        f"Left out: files that are not part of the layout: 1 (notes.txt); files outside of class folders: 1 (train/9.png); .bmp files, {only}: 1 (train/cat/2.bmp)"
        in case_inputs._origin(found.meta)
    )


def test_files_that_come_later_are_counted_though_the_arrays_are_reused(photos: Path) -> None:
    first = images(photos)
    (photos / "train/cat/3.webp").write_bytes(hostile.picture(form="WEBP"))
    second = images(photos)
    assert second.folder == first.folder
    assert (sum(left_out(first).values()), sum(left_out(second).values())) == (0, 1)


def test_a_class_without_any_picture_that_is_read_is_refused(photos: Path) -> None:
    for split in ("train", "val"):
        (photos / split / "bird").mkdir()
        (photos / split / "bird/0.webp").write_bytes(hostile.picture(form="WEBP"))
    (photos / "train/empty").mkdir()
    found = error(images, photos)
    assert found.startswith("3 files, folders or lines are refused.")
    assert (
        "train/bird has no .jpg, .jpeg or .png (1 of its files are of other kinds or in subfolders, such as train/bird/0.webp)"
        in found
    )
    assert "train/empty has no .jpg, .jpeg or .png (it is empty)" in found


def test_a_class_of_other_pictures_is_refused_also_where_the_arrays_are_there(photos: Path) -> None:
    images(photos)
    (photos / "train/bird").mkdir()
    (photos / "train/bird/0.webp").write_bytes(hostile.picture(form="WEBP"))
    assert "train/bird has no .jpg" in error(images, photos)


def test_hidden_folders_are_no_classes_and_hidden_files_no_pictures(photos: Path) -> None:
    before = tensors.identity(images(photos).folder)
    for split in ("train", "val"):
        (photos / split / ".ipynb_checkpoints").mkdir()
        (photos / split / ".ipynb_checkpoints/0-checkpoint.png").write_bytes(hostile.picture())
    (photos / "train/cat/._0.png").write_bytes(b"\0\5\x16\7")
    found = images(photos)
    assert tensors.identity(found.folder) == before
    assert left_out(found) == {"hidden files and folders": 3}


def test_transparency_and_a_rotation_are_counted_and_change_no_pixel(photos: Path) -> None:
    before = tensors.read(images(photos).folder)
    exif = Image.Exif()
    exif[pictures.ORIENTATION] = 6
    plain = Image.open(io.BytesIO(hostile.picture()))
    plain.save(photos / "val/cat/0.png", exif=exif)
    plain.putalpha(100)
    plain.save(photos / "val/cat/1.png")
    opaque = plain.copy()
    opaque.putalpha(255)
    opaque.save(photos / "val/dog/0.png")
    found = images(photos)
    assert hostile.changed(found.meta) == {pictures.ROTATED: 1, pictures.TRANSPARENT: 1}
    np.testing.assert_array_equal(tensors.read(found.folder)["test/image"], before["test/image"])


def test_damaged_notes_of_a_camera_do_not_matter(photos: Path) -> None:
    Image.open(io.BytesIO(hostile.picture())).save(photos / "val/cat/0.png", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert images(photos).meta["test_count"] == 4


def test_a_picture_of_another_format_is_named_with_it_under_any_name(photos: Path) -> None:
    (photos / "val/dog/1.jpg").write_bytes(hostile.picture(form="WEBP"))
    assert error(images, photos) == (
        f"{photos}: val/dog/1.jpg is a picture in the format WebP; convert it to JPEG or PNG, or remove it."
    )


def test_all_bad_files_of_a_folder_are_refused_at_once(photos: Path) -> None:
    for number in range(5):
        (photos / f"train/dog/bad{number}.png").write_bytes(hostile.picture()[:60])
    for found in (
        error(lambda place: inspect(DataRequest("imagenet", place, PICTURE_OPTIONS), 50), photos),
        error(images, photos),
    ):
        assert found.startswith("5 files, folders or lines are refused.")
        assert found.count(".png is damaged or not an image") == 3
        assert found.endswith("2 more are refused for reasons like these.")
        assert "download" not in found


def test_one_refusal_is_said_as_it_is_and_none_is_no_error() -> None:
    refuse([])
    with pytest.raises(UserError, match=r"^only this$"):
        refuse([UserError("only this")])


def test_an_encrypted_member_of_an_archive_is_refused_by_name(photos: Path, tmp_path: Path) -> None:
    path = shutil.make_archive(str(tmp_path / "imagenet-own"), "zip", photos)
    content = bytearray((tmp_path / "imagenet-own.zip").read_bytes())
    for mark, place in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        at = -1
        while (at := content.find(mark, at + 1)) >= 0:
            content[at + place] |= 1  # the flag of encryption
    (tmp_path / "imagenet-own.zip").write_bytes(content)
    shutil.rmtree(photos)
    assert "encrypted" in error(lambda place: prepare(DataRequest("imagenet", place, PICTURE_OPTIONS)), tmp_path)
    assert path.endswith(".zip")


# Recordings and their tables


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


# Texts


def reviews(root: Path) -> data.Prepared:
    return prepare(DataRequest("aclimdb", root, SMALL_TEXT))


def test_reviews_without_a_word_are_counted(tmp_path: Path) -> None:
    layouts.write_reviews(tmp_path, ["a good film", "", " !!", "b c"], ["a", "b"])
    found = reviews(tmp_path)
    assert (found.meta["train_count"], left_out(found)) == (2, {"reviews without a word": 2})


def test_a_byte_order_mark_of_a_review_is_no_word_and_line_ends_are_spaces(tmp_path: Path) -> None:
    one = layouts.write_reviews(tmp_path / "one", ["a good\nfilm", "a b"], ["a", "b"])
    other = layouts.write_reviews(tmp_path / "other", ["a good\nfilm", "a b"], ["a", "b"])
    (other / "train/neg/0_0.txt").write_bytes(b"\xef\xbb\xbfa good\r\nfilm")
    assert tensors.identity(reviews(one).folder) == tensors.identity(reviews(other).folder)


def test_reviews_in_another_encoding_are_to_be_converted_and_all_named(tmp_path: Path) -> None:
    layouts.write_reviews(tmp_path, ["a", "b", "c", "d"], ["a", "b"])
    for name in ("train/neg/0_0.txt", "train/pos/1_1.txt"):
        (tmp_path / name).write_bytes("caf\u00e9".encode("latin-1"))
    found = error(reviews, tmp_path)
    assert "train/neg/0_0.txt is not UTF-8 text (byte 3); convert it to UTF-8." in found
    assert "train/pos/1_1.txt is not UTF-8 text (byte 3); convert it to UTF-8." in found
    assert "download" not in found


def test_reviews_under_other_names_are_counted(tmp_path: Path) -> None:
    layouts.write_reviews(tmp_path, ["a", "b"], ["a", "b"])
    (tmp_path / "train/pos/mine.txt").write_text("good")
    (tmp_path / "train/pos/7_8.TXT").write_text("good")
    assert list(left_out(reviews(tmp_path)).values()) == [1, 1]


def parallel(root: Path, **options: Any) -> data.Prepared:
    return prepare(DataRequest("wmt16-en-de", root, {"vocabulary": 60, "source": 30, "target": 30} | options))


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    for stem in ("train", "test"):
        for language in ("en", "de"):
            (tmp_path / f"{stem}.{language}").write_text("a red house\n" * 20)
    return tmp_path


def test_a_byte_order_mark_is_no_word_piece(pairs: Path) -> None:
    before = tensors.identity(parallel(pairs).folder)
    for path in (pairs / "train.en", pairs / "test.de"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert tensors.identity(parallel(pairs).folder) == before


def test_lines_that_end_in_cr_alone_are_to_be_converted(pairs: Path) -> None:
    for path in (pairs / "train.en", pairs / "train.de"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    assert error(parallel, pairs) == f"{pairs / 'train.en'} ends its lines with CR alone; convert its line ends to LF."


def test_pairs_that_are_left_out_are_counted_by_reason(pairs: Path) -> None:
    with (pairs / "train.en").open("a") as english, (pairs / "train.de").open("a") as german:
        english.write("\n" + "a red house " * 20 + "\n")
        german.write("a red house\n" * 2)
    found = parallel(pairs)
    assert left_out(found) == {
        "train pairs of which a side is empty": 1, "train pairs longer than 30 and 30 word pieces": 1,
    }  # fmt: skip
    assert "train pairs of which a side is empty: 1 (line 21)" in case_inputs._origin(found.meta)


def test_text_without_sentence_ends_is_said_and_counted(tmp_path: Path) -> None:
    (tmp_path / "zhwiki.txt").write_text("An article in English. It has two sentences.\n" * 60)
    found = prepare(DataRequest("cn-wiki", tmp_path, SMALL_LANGUAGE))
    alike = "samples, which all have the same next-sentence label"
    one = "articles of one sentence (only \u3002\uff01\uff1f\uff1b end one), whose next sentence is always that of another article"
    assert hostile.changed(found.meta) == {
        f"train {one}": 57, f"test {one}": 3, f"train {alike}": found.meta["train_count"], f"test {alike}": found.meta["test_count"],
    }  # fmt: skip


def test_an_article_that_does_not_end_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "text/AA"
    place.mkdir(parents=True)
    (place / "wiki_00").write_text(
        "<doc id='1'>\n\u4e00\u3002\n</doc>\n" * 40 + "<doc id='2'>\n\u4e8c\u3002\n", encoding="utf-8"
    )
    assert "wiki_00: the article that begins in line 121 has no line '</doc>'" in error(
        lambda root: prepare(DataRequest("cn-wiki", root, SMALL_LANGUAGE)), tmp_path
    )


def test_a_second_file_of_articles_is_counted(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"zhwiki-{number}.txt").write_text("\u4e00\u3002\u4e8c\u3002\n" * 40, encoding="utf-8")
    found = prepare(DataRequest("cn-wiki", tmp_path, SMALL_LANGUAGE))
    assert found.meta["left_out"]["files that fit the layout as well as the first by name, which is used"]["first"] == [
        "zhwiki-2.txt"
    ]


def test_a_second_file_of_a_batch_is_refused(tmp_path: Path) -> None:
    folder = layouts.write_cifar_binary(tmp_path / "cifar-10-batches-bin")
    (folder / "copy").mkdir()
    shutil.copy(folder / "data_batch_1.bin", folder / "copy/data_batch_1.bin")
    assert "is a second file of the batch data_batch_1" in error(
        lambda root: prepare(DataRequest("cifar10", root)), tmp_path
    )


def test_a_line_of_digits_that_begins_with_a_hash_is_not_passed_over(tmp_path: Path) -> None:
    import gzip

    path = layouts.write_digits(tmp_path / "mnist_5k.csv.gz")
    with gzip.open(path, "at") as file:
        file.write("# mine\n")
    assert "is not a table of 785 columns" in error(lambda root: prepare(DataRequest("mnist-5k", root)), tmp_path)


def test_a_vocabulary_may_have_a_byte_order_mark_and_a_line_separator_as_a_piece(tmp_path: Path) -> None:
    (tmp_path / "zhwiki.txt").write_text("\u4e00\u3002\u4e8c\u3002\n" * 40, encoding="utf-8")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2028", "\u3002", *(f"p{number}" for number in range(93))]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8-sig")
    assert prepare(DataRequest("cn-wiki", tmp_path, SMALL_LANGUAGE)).meta["pieces"] == 100


# Where it is said, and what stays as it was


def test_a_plan_opens_a_sample_and_says_what_is_left_out(photos: Path, monkeypatch) -> None:
    (photos / "train/cat/3.webp").write_bytes(hostile.picture(form="WEBP"))
    opened = []
    decode = pictures.decode_picture
    monkeypatch.setattr(
        "steelyard.inputs.data.transforms.decode_picture", lambda *given: opened.append(given[2]) or decode(*given)
    )
    found = inspect(DataRequest("imagenet", photos, PICTURE_OPTIONS), 2)
    sentence = "Left out: .webp files, as only .jpg, .jpeg and .png are read: 1 (train/cat/3.webp)."
    assert found == [sentence]
    assert len(opened) == 4
    images(photos)
    opened.clear()
    assert inspect(DataRequest("imagenet", photos, PICTURE_OPTIONS), 2) == [
        "Left out: .webp files, as only .jpg, .jpeg and .png are read: 1 (train/cat/3.webp)."
    ]
    assert not opened
    (photos / "val/cat/0.png").write_bytes(hostile.picture("I;16"))
    assert inspect(DataRequest("imagenet", photos, PICTURE_OPTIONS), 2) == [
        sentence,
        f"Not used as it is: {pictures.SCALED}: 1 (val/cat/0.png). Of each split, at most 2 files were opened for this.",
    ]


def test_the_plan_shows_it_in_text_and_json(photos: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    (photos / "train/cat/3.webp").write_bytes(hostile.picture(form="WEBP"))
    command = ["run", "-w", "resnet50:imagenet", "-f", "pytorch", "--data", str(photos), "--dry-run"]
    assert main(command) == 0
    assert (
        "Data imagenet. Left out: .webp files, as only .jpg, .jpeg and .png are read: 1 (train/cat/3.webp)."
        in capsys.readouterr().out
    )
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"][0].startswith("Data imagenet. Left out: .webp files")
    (photos / "val/cat/0.png").write_bytes(b"nothing")
    assert main(command) == 2
    assert "val/cat/0.png is damaged or not an image" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "certify"])
def test_damaged_data_is_refused_before_the_wait_for_the_machine(
    photos: Path, monkeypatch, command: str, tmp_path: Path, capsys
) -> None:
    def wait(*_: object) -> None:
        raise AssertionError("waited for the machine")

    monkeypatch.setattr("steelyard.host.exclusive.use", wait)
    monkeypatch.setenv("STEELYARD_RUNS", str(tmp_path / "runs"))
    (photos / "val/cat/0.png").write_bytes(b"nothing")
    assert main([command, "-w", "resnet50:imagenet", "-f", "pytorch", "--data", str(photos)]) == 2
    assert "val/cat/0.png is damaged or not an image" in capsys.readouterr().err


def test_only_official_files_are_to_be_downloaded_again(tmp_path: Path, clips: Path) -> None:
    for name in ("aclImdb_v1.tar.gz", "mnist_5k.csv.gz", "imdb.npz"):
        (tmp_path / name).write_bytes(b"\x1f\x8b nothing")
    for name in ("aclimdb", "mnist-5k", "imdb-keras"):
        assert error(prepare, DataRequest(name, tmp_path)).endswith("; download it again.")
    (clips / "wavs/0.wav").write_bytes(b"RIFF")
    assert error(spoken, clips).endswith("; replace it, or remove it.")


KNOWN = {
    "cifar10": "2875afc5708b10fc933641000e05b6fdfa7df9029cba559e0ca9f7234e0b301e",
    "imagenet": "3789f8f087af59018d41daee9f1683d3c045623d0f1cbbab6809d99de6044027",
    "aclimdb": "3b42aefb379d605766b8d2974b0739693cae97634ee5bdb1b72e319eabc40087",
    "ljspeech": "71f6ccd4ea21b1ca50bf5b3afcb8299ff812ae94527defc18a6750c1fe236567",
    "librispeech": "d811769344022af7f42b2083ec67b91c3fa6a18dee2f305783991f4453de6a52",
    "clips-16k": "778ee2dfb74f0eb56408dd6c844f2e1c2f87335eb489d23bb2e717c7a4928ae2",
    "wmt16-en-de": "8ffd564436f029a4a1bd84d1a4d3ae20ed277c5840b83701f4138d3f5ed0b1e6",
    "wikitext-103-raw": "a81fa9680e785bb832c5dadb705ed148549ba4545bbf35f787df17e4133f8c19",
    "cn-wiki": "fc7be36b52b40a6ebb5dd089a44867af3ac86aa2395c2ee8a25bb3b0314c69ac",
}
"""Data set -> identity of the arrays of real data, as before anything was left out or counted."""
LIMITED = {"vocabulary": 4000, "length": 64, "masked": 10, "train_limit": 400, "test_limit": 100}
PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "cifar10": ("", {"mean": [0.5] * 3, "std": [0.5] * 3}),
    "imagenet": ("", {"resize": 64, "crop": 64, "train_limit": 400, "test_limit": 100}),
    "aclimdb": ("", {"vocabulary": 5000, "length": 100}),
    "ljspeech": ("", {"characters": 100, "frames": 566}),
    "librispeech": ("", {"train_split": "test-clean", "test_split": "dev-clean"}),
    "clips-16k": ("allison-16k", {"frames": 560, "transcript": 80}),
    "wmt16-en-de": ("wmt-style-en-de", {"vocabulary": 8000, "source": 50, "target": 50}),
    "wikitext-103-raw": ("wikitext-2", LIMITED | {"train_split": "valid"}),
    "cn-wiki": ("zhwiki-paragraphs.txt", LIMITED),
}


@pytest.mark.parametrize("name", KNOWN)
def test_real_data_in_official_layouts_has_the_arrays_that_it_had(real_data: Path, name: str) -> None:
    place, options = PLACES[name]
    assert tensors.identity(prepare(DataRequest(name, real_data / place, options)).folder) == KNOWN[name]


@pytest.mark.parametrize(("name", "options", "folder"), [
    ("mnist-5k", {}, "mnist-5k-2bf4b71c25c3fe5a710e"),
    ("movie-reviews", {"vocabulary": 5000, "length": 100}, "movie-reviews-d8a8941073ec29dd5cd9"),
])  # fmt: skip
def test_data_with_a_known_checksum_keeps_its_place_in_the_cache(
    name: str, options: dict[str, Any], folder: str
) -> None:
    from steelyard.inputs.data import preparation
    from steelyard.inputs.data.fetch import possible_sources
    from steelyard.inputs.data.options import parse_options

    found = data.find(name)
    (source,) = possible_sources(found)
    assert preparation._prepared_folder(source, parse_options(found, options)).name == folder


def test_data_without_a_checksum_is_read_anew_where_its_reader_reads_otherwise(photos: Path, monkeypatch) -> None:
    first = images(photos)
    monkeypatch.setitem(READINGS, "folders", 99)
    assert images(photos).folder != first.folder
