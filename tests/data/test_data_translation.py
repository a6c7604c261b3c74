"""Parallel text as rows of word pieces: special tokens, lengths, pairs left out, error messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard.errors import UserError
from steelyard.inputs import data
from steelyard.inputs.data.translation import BEGIN, END, PAD, SPECIAL, UNKNOWN
from steelyard.statistics import metrics
from steelyard_worker import tensors
from steelyard_worker.protocol import ENCODING

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer

ENGLISH = ["a red house", "two red houses", "a dog", "the dog sees a red house", "the house"] * 8
GERMAN = ["ein rotes Haus", "zwei rote Häuser", "ein Hund", "der Hund sieht ein rotes Haus", "das Haus"] * 8


def write_split(folder: Path, stem: str, english: list[str], german: list[str]) -> None:
    folder.mkdir(exist_ok=True)
    for language, lines in (("en", english), ("de", german)):
        (folder / f"{stem}.{language}").write_bytes("".join(f"{line}\n" for line in lines).encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "wmt16_de_en"
    write_split(place, "train", ENGLISH, GERMAN)
    write_split(place, "test", ["a red dog", "the house, red"], ["ein roter Hund", "das Haus, rot"])
    return place


def prepare(folder: Path, **options: Any) -> data.Prepared:
    wanted = {"vocabulary": 60, "source": 30, "target": 30} | options
    return data.prepare(data.DataRequest("wmt16-en-de", folder, wanted))


def encoding(prepared: data.Prepared) -> Tokenizer:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(prepared.folder / ENCODING))


def words(row: np.ndarray[Any, Any]) -> list[int]:
    """Return the ids between the begin and end tokens."""
    ids = row.tolist()
    return ids[1 : ids.index(END)]


def test_every_sentence_has_begin_and_end_tokens_and_padding_after_them(folder: Path) -> None:
    arrays = tensors.read(prepare(folder).folder)
    for split, count in (("train", 40), ("test", 2)):
        source, lengths, target = (arrays[f"{split}/{name}"] for name in ("source", "source_length", "target"))
        assert [array.dtype for array in (source, lengths, target)] == [np.int32] * 3
        assert source.shape == target.shape == (count, 30)
        for row, length in zip(source, lengths, strict=True):
            assert row[0] == BEGIN
            assert row[length - 1] == END
            assert (row[length:] == PAD).all()
            assert (row[1 : length - 1] > END).all() or UNKNOWN in row
        assert (target[:, 0] == BEGIN).all()
        assert ((target == END).sum(axis=1) == 1).all()


def test_decoding_the_pieces_gives_the_original_sentences(folder: Path) -> None:
    prepared = prepare(folder)
    arrays, spelled = tensors.read(prepared.folder), encoding(prepared).decode
    assert spelled(words(arrays["train/source"][3])) == ENGLISH[3]
    assert spelled(words(arrays["train/target"][1])) == GERMAN[1]


def predictions(prepared: data.Prepared, translated: list[str], truth: list[str]) -> dict[str, np.ndarray[Any, Any]]:
    """Return what a worker stores after an evaluation: pieces with end tokens and padding, and the encoding."""

    def padded(sentences: list[str]) -> np.ndarray[Any, Any]:
        rows = np.zeros((len(sentences), 30), np.int32)
        for row, sentence in zip(rows, sentences, strict=True):
            ids = [*encoding(prepared).encode(sentence).ids, END]
            row[: len(ids)] = ids
        return rows

    return {
        "nll": np.zeros(len(translated)),
        "words": np.ones(len(translated), np.int32),
        "translation": padded(translated),
        "truth": padded(truth),
        "encoding": np.fromfile(prepared.folder / ENCODING, np.uint8),
    }


def test_translations_are_scored_as_text_by_sacrebleu(folder: Path) -> None:
    import sacrebleu

    prepared, truth = prepare(folder), ["der Hund sieht ein rotes Haus", "zwei rote Häuser"]
    translated = ["der Hund sieht ein rotes Haus", "zwei rotes Haus ein Hund sieht"]
    assert metrics.score("translation", predictions(prepared, truth, truth))["BLEU"] == pytest.approx(100)
    found = metrics.score("translation", predictions(prepared, translated, truth))["BLEU"]
    assert found == pytest.approx(sacrebleu.corpus_bleu(translated, [truth]).score)
    assert 1 < found < 99


def test_both_languages_share_one_encoding_within_the_vocabulary_size(folder: Path) -> None:
    prepared = prepare(folder)
    pieces = encoding(prepared)
    assert [pieces.token_to_id(mark) for mark in SPECIAL] == [PAD, UNKNOWN, BEGIN, END]
    assert prepared.meta["pieces"] == pieces.get_vocab_size() <= 60
    assert {"▁ein", "▁red"} <= pieces.get_vocab().keys()
    assert max(tensors.read(prepared.folder)["train/target"].max(), 0) < 60


def test_a_character_missing_in_the_training_text_is_unknown(folder: Path) -> None:
    write_split(folder, "test", ["a ☃ house"], ["ein ☃ Haus"])
    assert UNKNOWN in tensors.read(prepare(folder).folder)["test/source"][0]


def test_pairs_that_are_too_long_or_have_an_empty_side_are_left_out_and_counted(folder: Path) -> None:
    write_split(folder, "test", ["a dog", "", "a red house " * 20, "the dog"], ["ein Hund", "nichts", "x", "der Hund"])
    prepared = prepare(folder)
    assert tensors.read(prepared.folder)["position/test"].tolist() == [0, 3]
    assert {name: prepared.meta[f"test_{name}"] for name in ("count", "held", "dropped")} == {
        "count": 2,
        "held": 4,
        "dropped": 2,
    }


def test_the_word_count_is_the_number_of_target_tokens_to_predict(folder: Path) -> None:
    prepared = prepare(folder)
    target = tensors.read(prepared.folder)["train/target"]
    assert prepared.meta["train_words"] == (target[:, 1:] != PAD).sum()


def test_limits_select_the_first_pairs_that_fit(folder: Path) -> None:
    prepared = prepare(folder, train_limit=7, test_limit=1)
    assert (prepared.meta["train_count"], prepared.meta["test_count"]) == (7, 1)
    assert tensors.read(prepared.folder)["position/train"].tolist() == list(range(7))


def test_the_same_text_gives_the_same_arrays(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tensors.read(prepare(folder).folder)
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "another"))
    second = tensors.read(prepare(folder).folder)
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_published_word_pieces_are_joined_again(folder: Path, tmp_path: Path) -> None:
    whole = tensors.read(prepare(folder).folder)
    cut = tmp_path / "cut"
    split = [line.replace("hous", "ho@@ us") for line in ENGLISH]
    write_split(cut, "train.tok.clean.bpe.32000", split, [line.replace("Hau", "H@@ au") for line in GERMAN])
    write_split(cut, "newstest2014.tok.bpe.32000", ["a r@@ ed dog"], ["ein roter Hund"])
    prepared = prepare(cut)
    assert prepared.meta["layout"] == "word pieces"
    assert np.array_equal(tensors.read(prepared.folder)["train/source"], whole["train/source"])


def test_published_tokenised_files_are_preferred_and_not_split_at_punctuation(folder: Path) -> None:
    write_split(folder, "train.tok.clean", ["it &apos;s a dog"] * 9 + ENGLISH, ["ein Hund"] * 9 + GERMAN)
    write_split(folder, "newstest2014.tok", ["a dog"], ["ein Hund"])
    prepared = prepare(folder, vocabulary=200)
    assert prepared.meta["layout"] == "tokens"
    assert encoding(prepared).encode("it &apos;s").tokens == ["▁it", "▁&apos;s"]


def test_newstest_is_used_if_there_is_no_test_file(folder: Path) -> None:
    for language in ("en", "de"):
        (folder / f"test.{language}").rename(folder / f"newstest2014.{language}")
    assert prepare(folder).meta["test_count"] == 2


def test_a_line_that_is_not_utf8_is_reported(folder: Path) -> None:
    (folder / "train.de").write_bytes("Häuser\n".encode() * 6 + "Häuser\n".encode("latin-1") + b"x\n" * 33)
    with pytest.raises(UserError, match=r"train\.de, line 7, is not UTF-8 text \(byte 1 of the line\)"):
        prepare(folder)


@pytest.mark.parametrize(("language", "other"), [("en", "de"), ("de", "en")])
def test_a_shorter_training_file_is_reported_with_its_last_line(folder: Path, language: str, other: str) -> None:
    path = folder / f"train.{language}"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:33]))
    with pytest.raises(UserError, match=rf"train\.{language} ends after line 33, but train\.{other} has more lines"):
        prepare(folder)


def test_a_shorter_test_file_is_reported(folder: Path) -> None:
    (folder / "test.de").write_bytes(b"ein Hund\n")
    with pytest.raises(UserError, match=r"test\.de ends after line 1, but test\.en has more lines"):
        prepare(folder)


def test_a_missing_language_file_is_reported(folder: Path) -> None:
    (folder / "train.de").unlink()
    with pytest.raises(
        UserError,
        match=r"wmt16_de_en does not hold 'train\.de', which is part of the layout 'sentences' of 'wmt16-en-de'",
    ):
        prepare(folder)


def test_a_vocabulary_too_small_for_the_characters_is_rejected(folder: Path) -> None:
    with pytest.raises(UserError, match=r"uses \d+ different characters, which do not fit a vocabulary of 12"):
        prepare(folder, vocabulary=12)


def test_a_split_with_only_long_sentences_is_reported(folder: Path) -> None:
    with pytest.raises(UserError, match=r"test\.en and test\.de hold no pair of at most 30 and 4 word pieces"):
        write_split(folder, "test", ["a dog"], ["ein Hund sieht ein rotes Haus"])
        prepare(folder, target=4, vocabulary=60)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"vocabulary": 4}, "vocabulary must be at least 5"),
        ({"target": 2}, r"target must be at least 3 \(begin, one piece, end\)"),
        ({"length": 50}, "has no option 'length'"),
        ({"train_limit": -1}, "train_limit must be at least 0"),
    ],
)
def test_invalid_options_are_rejected(folder: Path, options: dict[str, int], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        prepare(folder, **options)


def test_real_image_captions_in_two_languages_are_prepared(real_data: Path) -> None:
    prepared = prepare(real_data / "wmt-style-en-de", vocabulary=8000, source=50, target=50)
    arrays, pieces = tensors.read(prepared.folder), encoding(prepared)
    assert (prepared.meta["train_count"], prepared.meta["train_dropped"], prepared.meta["test_count"]) == (
        28_993,
        7,
        1_000,
    )
    assert prepared.meta["pieces"] == 8000
    assert pieces.decode(words(arrays["train/source"][0])) == "Two young, White males are outside near many bushes."
    assert (
        pieces.decode(words(arrays["train/target"][0]))
        == "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."
    )
    assert (arrays["test/source"] == UNKNOWN).sum() < 5
