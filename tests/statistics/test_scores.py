"""Scores of predictions, checked against hand calculations."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from steelyard.errors import UserError
from steelyard.statistics.metrics import LETTERS, METRICS, in_percent, score


def codes(text: str, width: int) -> list[int]:
    """Return the classes of a text, padded with 0."""
    return [LETTERS.index(letter) for letter in text] + [0] * (width - len(text))


def test_accuracy_is_the_share_of_correct_predictions() -> None:
    predictions = {"truth": np.array([1, 2, 3, 4]), "predicted": np.array([1, 2, 0, 4])}
    assert score("accuracy", predictions) == {"accuracy": 0.75}
    among = predictions | {"among_five": np.array([True, True, False, False])}
    assert list(score("accuracy", among).items()) == [("accuracy", 0.75), ("top-5", 0.5)]


def test_a_language_model_is_scored_per_masked_word() -> None:
    # Sums over samples: 8 words, 6 of them right, 8 ln 5 nats; one of two next-sentence predictions is right.
    predictions = {
        "words": np.array([3, 5]),
        "right": np.array([2, 4]),
        "nll": np.array([3 * log(5), 5 * log(5)], np.float32),
        "next_right": np.array([1, 0]),
    }
    found = score("masked-language", predictions)
    assert list(found) == ["masked words", "perplexity", "next sentence"]
    assert found["masked words"] == 0.75
    assert found["perplexity"] == pytest.approx(5)
    assert found["next sentence"] == 0.5


def test_small_losses_of_many_samples_are_not_lost_in_the_sum() -> None:
    # In float32 the sum stops growing at 2^24 ones.
    count = 2**24 + 2**22
    nll = np.concatenate([np.full(1, 2.0**24, np.float32), np.ones(2**22, np.float32)])
    words = np.array([count])
    assert score("translation", {"words": words, "nll": nll})["perplexity"] == pytest.approx(exp(1), rel=1e-9)
    language = {"words": words, "nll": nll, "right": words, "next_right": np.ones(1)}
    assert score("masked-language", language)["perplexity"] == pytest.approx(exp(1), rel=1e-9)


def test_a_translation_without_a_search_has_a_perplexity_only() -> None:
    predictions = {"words": np.array([2, 3]), "nll": np.array([2 * log(7), 3 * log(7)])}
    assert score("translation", predictions) == {"perplexity": pytest.approx(7)}


@pytest.fixture
def encoding() -> np.ndarray:
    """A tokenizer of whole words; 0 pads, 3 ends a sentence."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["[PAD]", "[UNK]", "[BOS]", "[EOS]", "the", "cat", "sat", "on", "a", "mat"]
    pieces = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    pieces.pre_tokenizer = pre_tokenizers.Whitespace()
    return np.frombuffer(pieces.to_str().encode(), np.uint8)


def test_translations_are_scored_up_to_their_end(encoding: np.ndarray) -> None:
    truth = np.array([[4, 5, 6, 7, 8, 9, 3, 0], [8, 5, 6, 7, 4, 9, 3, 0]])
    after_the_end = truth.copy()
    after_the_end[:, 7] = 5
    others = {"words": np.array([6, 6]), "nll": np.zeros(2), "encoding": encoding}
    found = score("translation", others | {"translation": after_the_end, "truth": truth})
    assert list(found) == ["perplexity", "BLEU"]
    assert found["BLEU"] == pytest.approx(100)


def test_a_translation_without_an_end_is_scored_whole(encoding: np.ndarray) -> None:
    truth = np.array([[4, 5, 6, 7, 8, 9, 3]])
    endless = np.array([[4, 5, 6, 7, 8, 9, 9]])
    others = {"words": np.array([6]), "nll": np.zeros(1), "encoding": encoding}
    found = score("translation", others | {"translation": endless, "truth": truth})["BLEU"]
    # Of n-grams 6/7, 5/6, 4/5 and 3/4 match; the translation is not too short.
    assert found == pytest.approx(100 * (6 / 7 * 5 / 6 * 4 / 5 * 3 / 4) ** 0.25)
    turned = score("translation", others | {"translation": truth, "truth": endless})["BLEU"]
    # All n-grams match, but six words instead of seven: the brevity penalty is exp(1 - 7 / 6).
    assert turned == pytest.approx(100 * exp(1 - 7 / 6))


def test_speech_is_decoded_by_merging_repetitions_and_dropping_blanks() -> None:
    # "HELLO": the blank between the two L keeps both; frames beyond the length are ignored.
    frames = np.array([codes("HHEL_LLOO", 11), codes("_A''S_", 11)], np.int8)
    frames[0, 9:] = LETTERS.index("X")
    predictions = {
        "frames": frames,
        "lengths": np.array([9, 11]),
        "transcript": np.array([codes("HELLO", 8), codes("A'S", 8)]),
    }
    assert score("speech", predictions) == {"WER": 0.0, "CER": 0.0}


def test_speech_without_a_length_for_each_utterance_is_refused() -> None:
    predictions = {
        "frames": np.array([codes("A", 2)] * 2, np.int8),
        "lengths": np.array([2]),
        "transcript": np.array([codes("A", 2)] * 2),
    }
    with pytest.raises(ValueError, match="shorter"):
        score("speech", predictions)


def test_word_and_character_errors_are_shares_of_the_truth() -> None:
    # One of three words is wrong; two of eleven characters, counting the spaces, must be inserted.
    predictions = {
        "frames": np.array([codes("IT IS HE", 12)], np.int8),
        "lengths": np.array([12]),
        "transcript": np.array([codes("IT IS HERE'", 12)]),
    }
    found = score("speech", predictions)
    assert found["WER"] == pytest.approx(1 / 3)
    assert found["CER"] == pytest.approx(3 / 11)


def test_a_spectrogram_has_the_means_of_its_two_losses() -> None:
    predictions = {"mel": np.array([0.5, 1.5]), "gate": np.array([0.1, 0.3])}
    assert score("spectrogram", predictions) == {"mel loss": 1.0, "gate loss": pytest.approx(0.2)}


def test_rates_are_shown_in_percent_and_other_scores_are_not() -> None:
    rates = {"accuracy", "top-5", "masked words", "next sentence", "WER", "CER"}
    others = {"perplexity", "BLEU", "mel loss", "gate loss"}
    assert {name for name in rates | others if in_percent(name)} == rates


def test_an_unknown_metric_is_named_with_the_nearest_one() -> None:
    with pytest.raises(UserError, match=r"There is no metric 'acuracy'\. Did you mean 'accuracy'\?"):
        score("acuracy", {})
    assert list(METRICS) == [
        "none",
        "accuracy",
        "masked-language",
        "translation",
        "speech",
        "spectrogram",
        "next-token",
        "regression",
    ]
