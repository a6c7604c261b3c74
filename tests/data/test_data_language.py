"""Training samples of BERT: articles, word pieces, sentence pairs, masks, error messages."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from steelyard.errors import UserError
from steelyard.inputs.data import DataRequest, language, prepare
from steelyard.inputs.data.articles import split_articles
from steelyard.inputs.data.catalogue import find
from steelyard.inputs.data.options import LanguageOptions
from steelyard.inputs.data.source import find_in_folder
from steelyard.inputs.data.wordpieces import SPECIAL
from steelyard_worker.tensors import read

WORDS = ["".join(letters) for letters in itertools.product("abcdefgh", repeat=4)]
ARTICLES, SENTENCES, LENGTH = 30, 12, 7
SMALL = {"vocabulary": len(SPECIAL) + len(WORDS), "length": 24, "masked": 4}


def write_wikitext(folder: Path, suffix: str = "raw") -> Path:
    """Write articles in which every word is different and words are in order, and a vocabulary of exactly these words."""
    words = iter(WORDS)
    articles = []
    for number in range(ARTICLES):
        sentences = [" ".join(itertools.islice(words, LENGTH)) for _ in range(SENTENCES)]
        articles.append(f" = Article {number} = \n \n = = Part = = \n {' . '.join(sentences)} . \n")
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "valid", "test"):
        (folder / f"wiki.{split}.{suffix}").write_text("".join(articles), encoding="utf-8")
    pieces = [*SPECIAL, *WORDS]
    pieces[-1] = "."  # the last word is used by no article
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return folder


def prepared(folder: Path, **options: object) -> dict[str, np.ndarray]:
    return read(prepare(DataRequest("wikitext-103-raw", folder, SMALL | options)).folder)


def restored(arrays: dict[str, np.ndarray], row: int) -> tuple[list[int], list[int]]:
    """Return the ids of both parts with the masked words restored."""
    ids, length = arrays["train/input_ids"][row].copy(), int(arrays["train/input_mask"][row].sum())
    used = arrays["train/masked_lm_weights"][row] > 0
    ids[arrays["train/masked_lm_positions"][row][used]] = arrays["train/masked_lm_ids"][row][used]
    border = length - int(arrays["train/segment_ids"][row].sum())
    assert (ids[0], ids[border - 1], ids[length - 1]) == (2, 3, 3)
    assert not ids[length:].any()
    return ids[1 : border - 1].tolist(), ids[border : length - 1].tolist()


def text_of(article: int) -> list[int]:
    """Return the ids of a whole article."""
    place, full_stop = article * SENTENCES * LENGTH, len(SPECIAL) + len(WORDS) - 1
    found: list[int] = []
    for start in range(place, place + SENTENCES * LENGTH, LENGTH):
        found += [*range(len(SPECIAL) + start, len(SPECIAL) + start + LENGTH), full_stop]
    return found


def find_in(ids: list[int], article: int) -> int:
    """Return the position of the pieces in an article, -1 if they are not in it."""
    text = text_of(article)
    return next((i for i in range(len(text) - len(ids) + 1) if text[i : i + len(ids)] == ids), -1)


def article_of(ids: list[int]) -> int:
    return next(number for number in range(ARTICLES) if find_in(ids, number) >= 0)


def test_both_parts_are_contiguous_text_and_the_label_marks_a_random_second_part(tmp_path: Path):
    arrays = prepared(write_wikitext(tmp_path))
    labels = arrays["train/next_sentence_label"]
    for row, label in enumerate(labels):
        first, second = restored(arrays, row)
        if len(first) < 2 or len(second) < 2:
            continue  # a full stop alone occurs everywhere
        one, other = article_of(first), article_of(second)
        assert (one != other) == bool(label)
        if not label:
            assert find_in(first, one) + len(first) <= find_in(second, one)
    assert 0.35 < labels.mean() < 0.7


def test_masked_positions_are_sorted_and_replaced_in_the_published_shares(tmp_path: Path):
    arrays = prepared(write_wikitext(tmp_path), copies=5, masked=8)
    ids, lengths = arrays["train/input_ids"], arrays["train/input_mask"].sum(axis=1)
    weights, places = arrays["train/masked_lm_weights"], arrays["train/masked_lm_positions"]
    assert np.array_equal(weights.sum(axis=1), np.maximum(1, np.round((lengths - 3) * 0.15)))
    for row in range(len(ids)):
        used = places[row][weights[row] > 0]
        assert (np.diff(used) > 0).all()
        assert not set(ids[row][used]) & {2, 3}
        assert not places[row][weights[row] == 0].any()
    shown = np.take_along_axis(ids, places, axis=1)[weights > 0]
    truth = arrays["train/masked_lm_ids"][weights > 0]
    assert np.mean(shown == 4) == pytest.approx(0.8, abs=0.04)
    assert np.mean(shown == truth) == pytest.approx(0.1, abs=0.03)
    assert np.mean((shown != 4) & (shown != truth)) == pytest.approx(0.1, abs=0.03)
    assert not set(shown) & {0, 1, 2, 3}


def test_copies_add_new_samples_to_the_training_split_only(tmp_path: Path):
    folder = write_wikitext(tmp_path)
    once, twice = prepared(folder), prepared(folder, copies=2)
    count = len(once["train/input_ids"])
    assert len(twice["train/input_ids"]) > 1.8 * count
    assert np.array_equal(twice["train/input_ids"][:count], once["train/input_ids"])
    assert not np.array_equal(twice["train/input_ids"][count : 2 * count], once["train/input_ids"])
    assert np.array_equal(twice["test/input_ids"], once["test/input_ids"])


def test_several_processes_make_the_same_samples_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = write_wikitext(tmp_path)
    alone = {name: array.copy() for name, array in prepared(folder).items()}
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "other"))
    monkeypatch.setattr(language, "MIN_ARTICLES_FOR_PROCESSES", 0)
    monkeypatch.setattr(language, "ARTICLES_PER_TASK", 7)
    together = prepared(folder)
    assert all(np.array_equal(together[name], array) for name, array in alone.items())


def test_limits_select_the_first_samples_and_another_seed_gives_other_samples(tmp_path: Path):
    folder = write_wikitext(tmp_path)
    whole, some = prepared(folder), prepared(folder, train_limit=10, test_limit=3)
    assert np.array_equal(some["train/input_ids"], whole["train/input_ids"][:10])
    assert some["test/next_sentence_label"].shape == some["position/test"].shape == (3,)
    assert not np.array_equal(prepared(folder, train_limit=10, seed=1)["train/input_ids"], some["train/input_ids"])


def test_a_learned_vocabulary_does_not_depend_on_hash_seeds(tmp_path: Path, environment: dict[str, str]):
    text = " ".join(WORDS[:400] + [word[::-1] for word in WORDS[300:900]]).replace("ab", "abxyz")
    (tmp_path / "text").write_text(text, encoding="utf-8")
    code = (
        "from steelyard.inputs.data.wordpieces import learn_vocabulary; "
        f"text = open({str(tmp_path / 'text')!r}).read().split(); print(learn_vocabulary(text, text, 120))"
    )
    learned = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment).stdout
        for _ in range(3)
    }
    assert len(learned) == 1
    assert learned.pop().count("'") == 240


def test_chinese_characters_are_words_without_continuation_pieces(tmp_path: Path):
    (tmp_path / "zhwiki.txt").write_text("战国无双是游戏。剧情丰富！\n" * 40, encoding="utf-8")
    found = prepare(DataRequest("cn-wiki", tmp_path, {"vocabulary": 100, "length": 16, "masked": 2}))
    pieces = (found.folder / "vocab.txt").read_text(encoding="utf-8").split()
    assert {"战", "国", "。"} < set(pieces)
    assert not [piece for piece in pieces if piece.startswith("##")]


def articles(name: str, folder: Path, **options: object) -> dict[str, list[list[str]]]:
    wanted = LanguageOptions(**options)
    source = find_in_folder(find(name).with_splits(wanted.train_split, wanted.test_split), folder)
    return {split: list(each.read()) for split, each in split_articles(source, wanted).items()}


def test_wikitext_escapes_are_undone_and_headings_left_out(tmp_path: Path):
    text = " \n = Lobster = \n \n It weighs 0 @.@ 7 – 2 kg in a well @-@ known <unk> . It is blue . \n = = Food = = \n Good . \n"
    for split in ("valid", "test"):
        (tmp_path / f"wiki.{split}.tokens").write_text(text + " = Crab = \n Red . \n", encoding="utf-8")
    found = articles("wikitext-103-raw", tmp_path, train_split="valid")
    lobster = ["It weighs 0.7 – 2 kg in a well-known [UNK] .", "It is blue .", "Good ."]
    assert found["train"] == [lobster, ["Red ."]]


def test_wikipedia_is_read_from_lines_or_from_extracted_folders(tmp_path: Path):
    lines = [f"第{number}。「好。」是！" for number in range(40)]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "zhwiki-2024.txt").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    flat = articles("cn-wiki", tmp_path / "a")
    assert flat["train"][0] == ["第0。", "「好。」", "是！"]
    assert (len(flat["train"]), len(flat["test"])) == (38, 2)
    folder = tmp_path / "text" / "AA"
    folder.mkdir(parents=True)
    for number, line in enumerate(lines):
        (folder / f"wiki_{number:02}").write_text(
            f'<doc id="1" url="" title="题">\n题\n\n{line}\n</doc>\n', encoding="utf-8"
        )
    extracted = articles("cn-wiki", tmp_path)
    assert extracted["train"][0] == ["题", "第0。", "「好。」", "是！"]
    assert len(extracted["train"]) + len(extracted["test"]) == 40


@pytest.mark.parametrize(
    ("break_it", "sentence"),
    [
        (
            lambda f: (f / "wiki.train.raw").unlink(),
            "does not hold 'wiki.train.raw', which is part of the layout 'raw characters'",
        ),
        (
            lambda f: (f / "wiki.train.raw").write_bytes(b""),
            "wiki.train.raw holds no text; at least two articles are needed",
        ),
        (lambda f: (f / "wiki.test.raw").write_text(" = One = \n a b . \n"), "wiki.test.raw holds a single article"),
        (
            lambda f: (f / "wiki.test.raw").write_bytes(b" = A = \n abc \xff . \n"),
            "wiki.test.raw is not UTF-8 text (byte 13)",
        ),
        (lambda f: (f / "vocab.txt").write_bytes(b"[PAD]\n\xe9\n"), "vocab.txt is not UTF-8 text (byte 6)"),
        (lambda f: (f / "vocab.txt").write_text("[PAD]\n"), "has 1 word pieces, but this preset needs 4,101"),
        (lambda f: (f / "vocab.txt").write_text("\n".join(map(str, range(4101)))), "has no piece '[PAD]'"),
        (
            lambda f: (f / "vocab.txt").write_text("\n".join([*SPECIAL, *["a"] * 4096])),
            "has the piece 'a' more than once",
        ),
    ],
)
def test_a_missing_empty_or_invalid_file_is_reported_and_no_files_remain(
    tmp_path: Path, cache: Path, break_it, sentence: str
):
    folder = write_wikitext(tmp_path / "wikitext-103-raw")
    break_it(folder)
    with pytest.raises(UserError) as error:
        prepared(folder)
    assert sentence in str(error.value)
    assert not [path for path in (cache / "data" / "prepared").glob("*") if path.is_dir()]


def test_a_folder_without_text_is_reported(tmp_path: Path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n")
    with pytest.raises(UserError, match=r"holds no text; .* steelyard list data cn-wiki"):
        prepare(DataRequest("cn-wiki", tmp_path, {"vocabulary": 100, "length": 16, "masked": 2}))


@pytest.mark.parametrize(
    "options", [{"length": 7}, {"masked": 0}, {"masked": 126}, {"copies": 0}, {"short_share": 1.5}]
)
def test_invalid_options_are_rejected(tmp_path: Path, options: dict[str, float]):
    with pytest.raises(UserError, match=next(iter(options))):
        prepare(DataRequest("wikitext-103-raw", tmp_path, options))


@pytest.mark.parametrize(
    ("name", "place", "options"),
    [
        ("wikitext-103-raw", "wikitext-2", {"train_split": "valid"}),
        ("cn-wiki", "zhwiki-paragraphs.txt", {}),
    ],
)
def test_real_text_gives_samples_with_few_unknown_words(
    real_data: Path, name: str, place: str, options: dict[str, str]
):
    sizes = {"vocabulary": 4000, "length": 64, "masked": 10, "train_limit": 400, "test_limit": 100}
    found = prepare(DataRequest(name, real_data / place, sizes | options))
    arrays = read(found.folder)
    assert (found.meta["train_count"], found.meta["test_count"]) == (400, 100)
    inside = arrays["train/input_mask"] == 1
    assert inside.mean() > 0.85
    assert np.mean(arrays["train/input_ids"][inside] == 1) < 0.06
    assert arrays["train/input_ids"].max() < 4000
