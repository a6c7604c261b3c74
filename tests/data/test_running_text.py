"""Text of a user's own as samples for the prediction of the next token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_data import error
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from steelyard.inputs.data import DataRequest, inspect, prepare
from steelyard.inputs.data.own import texts
from steelyard_worker import tensors

if TYPE_CHECKING:
    from pathlib import Path

ALPHABET = "etaoin shrdlu"
TEXT = (ALPHABET * 40)[:500]


def request(folder: Path, **options: Any) -> DataRequest:
    return DataRequest("text", folder, {"length": 8, "vocabulary": 32, **options})


def prepared(folder: Path, **options: Any) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    done = prepare(request(folder, **options))
    return tensors.read(done.folder), done.meta


def spelled(ids: np.ndarray[Any, Any], meta: dict[str, Any]) -> str:
    return "".join("?" if number == 0 else meta["characters"][number - 1] for number in ids.reshape(-1).tolist())


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8", newline="")
    return folder


def test_targets_are_the_text_one_token_later(tmp_path: Path) -> None:
    found, meta = prepared(write(tmp_path, book=TEXT))
    tokens, targets = spelled(found["train/tokens"], meta), spelled(found["train/targets"], meta)
    assert TEXT.startswith(tokens) and TEXT[1:].startswith(targets)
    assert found["train/tokens"].shape == (56, 8) and found["train/tokens"].dtype == np.int32
    assert len(tokens) == (450 - 1) // 8 * 8


def test_the_last_tenth_of_each_file_is_for_testing(tmp_path: Path) -> None:
    found, meta = prepared(write(tmp_path, a=TEXT, b=TEXT.upper()), vocabulary=64)
    assert (TEXT[450:] + TEXT.upper()[450:]).startswith(spelled(found["test/tokens"], meta))
    assert (TEXT[:450] + TEXT.upper()[:450]).startswith(spelled(found["train/tokens"], meta))


def test_folders_name_the_splits(tmp_path: Path) -> None:
    write(tmp_path / "train", a=TEXT)
    write(tmp_path / "test", b=TEXT[::-1])
    write(tmp_path, readme="not read")
    found, meta = prepared(tmp_path)
    assert TEXT.startswith(spelled(found["train/tokens"], meta))
    assert TEXT[::-1].startswith(spelled(found["test/tokens"], meta))
    assert {reason: tally["first"] for reason, tally in meta["left_out"].items()} == {
        "files that are not part of the layout": ["readme.txt"]
    }


def test_characters_are_numbered_by_how_often_the_training_text_has_them(tmp_path: Path) -> None:
    _, meta = prepared(write(tmp_path, book="aab" * 100 + "c" * 30))
    assert meta["characters"] == "ab"
    assert meta["changed"] == {texts.RARE: {"count": 30, "first": []}}, "the characters that only the test text has"


def test_the_rarest_characters_are_left_to_id_0(tmp_path: Path) -> None:
    found, meta = prepared(write(tmp_path, book=TEXT), vocabulary=5)
    assert (len(meta["characters"]), meta["held_characters"]) == (4, 13)
    assert found["train/tokens"].max() == 4
    assert meta["changed"][texts.RARE]["count"] == (found["train/tokens"] == 0).sum() + _dropped(TEXT, meta)


def _dropped(text: str, meta: dict[str, Any]) -> int:
    """Count the unknown characters that are not in `train/tokens`: of the test split, and of what remains at the end."""
    return sum(character not in meta["characters"] for character in text[448:])


def test_bytes_are_tokens(tmp_path: Path) -> None:
    text = "Zürich €" * 30
    found, _ = prepared(write(tmp_path, book=text), tokenizer="bytes", vocabulary=256)
    assert text.encode().startswith(found["train/tokens"].astype(np.uint8).tobytes())


def tokenizer() -> Tokenizer:
    found = Tokenizer(models.BPE(unk_token="?"))
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    found.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=20, special_tokens=["?"], show_progress=False))
    return found


def test_a_tokenizer_of_the_users_own_cuts_the_text(tmp_path: Path) -> None:
    write(tmp_path, book=TEXT)
    tokenizer().save(str(tmp_path / "tokenizer.json"))
    found, meta = prepared(tmp_path, tokenizer="tokenizer.json")
    expected = tokenizer().encode(TEXT[:450]).ids
    assert found["train/tokens"].reshape(-1).tolist() == expected[: found["train/tokens"].size]
    assert "tokenizer.json" not in str(meta["left_out"])


def test_another_tokenizer_makes_other_data(tmp_path: Path) -> None:
    write(tmp_path, book=TEXT)
    tokenizer().save(str(tmp_path / "tokenizer.json"))
    before = prepare(request(tmp_path, tokenizer="tokenizer.json")).folder
    other = Tokenizer(models.WordLevel({"?": 0, "e": 1}, unk_token="?"))
    other.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    other.save(str(tmp_path / "tokenizer.json"))
    assert prepare(request(tmp_path, tokenizer="tokenizer.json")).folder != before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokenizer": "tokenizer.json"}, "has no 'tokenizer.json' beside it"),
        ({"tokenizer": "words"}, "it must be 'characters', 'bytes' or the name of a .json file"),
        ({"tokenizer": "bytes", "vocabulary": 255}, "vocabulary must be at least 256 for bytes"),
        ({"length": 500}, "the train text has 450 tokens, and one sample needs 501"),
        ({"length": 60}, "the test text has 50 tokens, and one sample needs 61"),
        ({"tokens": "x", "targets": "x"}, "tokens and targets need two names"),
        ({"size": 3}, "has no option 'size'"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    assert message in error(prepare, request(write(tmp_path, book=TEXT), **options))


def test_a_tokenizer_with_more_tokens_than_the_vocabulary_is_refused(tmp_path: Path) -> None:
    write(tmp_path, book=TEXT)
    tokenizer().save(str(tmp_path / "tokenizer.json"))
    assert "use --set vocabulary=20" in error(prepare, request(tmp_path, tokenizer="tokenizer.json", vocabulary=19))


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    write(tmp_path, book=TEXT)
    for content in ("", "{}", '{"version": 1}', "[" * 5000):
        (tmp_path / "tokenizer.json").write_text(content)
        message = error(lambda place: inspect(request(place, tokenizer="tokenizer.json"), 50), tmp_path)
        assert "is no tokenizer of the library `tokenizers`" in message


def test_a_plan_counts_the_samples_and_refuses_a_text_that_is_too_short(tmp_path: Path) -> None:
    write(tmp_path, a=TEXT, b=TEXT)
    for options in ({}, {"tokenizer": "bytes", "vocabulary": 256}, {"train_limit": 5}):
        known = inspect(request(tmp_path, **options), 50)[1]
        meta = prepared(tmp_path, **options)[1]
        assert known == (meta["train_count"], meta["test_count"], 0)
    assert inspect(request(tmp_path, length=7), 1)[1] == (0, 0, 0), "of two files only one was opened"
    assert "the test text has 100 tokens" in error(lambda place: inspect(request(place, length=100), 50), tmp_path)


def test_files_that_are_not_utf_8_are_named_before_anything_is_prepared(tmp_path: Path) -> None:
    write(tmp_path, a=TEXT)
    (tmp_path / "b.txt").write_bytes("Zürich".encode("latin-1"))
    (tmp_path / "c.txt").write_bytes(TEXT.encode("utf-16"))
    message = error(lambda place: inspect(request(place), 50), tmp_path)
    assert "b.txt is not UTF-8 text (byte 1)" in message and "c.txt is not UTF-8 text (byte 0)" in message


@given(text=st.text(min_size=40, max_size=400), piece=st.integers(1, 50))
def test_pieces_of_a_text_are_the_text(text: str, piece: int) -> None:
    before, texts.PIECE = texts.PIECE, piece
    try:
        pieces = list(texts._pieces(text))
    finally:
        texts.PIECE = before
    assert "".join(pieces) == text
    assert all(len(each) > piece or each is pieces[-1] for each in pieces)
    assert all(each.endswith("\n") for each in pieces[:-1])
