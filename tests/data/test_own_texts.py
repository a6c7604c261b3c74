"""What texts and tables have lost in silence: it is read, refused with the right advice, or counted."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import hostile
import official_layouts as layouts
import pytest
from own_data import SMALL_LANGUAGE, SMALL_TEXT, error, left_out

from steelyard.inputs import case_inputs, data
from steelyard.inputs.data import DataRequest, prepare
from steelyard_worker import tensors

if TYPE_CHECKING:
    from pathlib import Path


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
        "train pairs of which a side is empty": 1,
        "train pairs longer than 30 and 30 word pieces": 1,
    }
    assert "train pairs of which a side is empty: 1 (line 21)" in case_inputs._origin(found.meta)


def test_text_without_sentence_ends_is_said_and_counted(tmp_path: Path) -> None:
    (tmp_path / "zhwiki.txt").write_text("An article in English. It has two sentences.\n" * 60)
    found = prepare(DataRequest("cn-wiki", tmp_path, SMALL_LANGUAGE))
    alike = "samples, which all have the same next-sentence label"
    one = "articles of one sentence (only \u3002\uff01\uff1f\uff1b end one), whose next sentence is always that of another article"
    assert hostile.changed(found.meta) == {
        f"train {one}": 57,
        f"test {one}": 3,
        f"train {alike}": found.meta["train_count"],
        f"test {alike}": found.meta["test_count"],
    }


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
