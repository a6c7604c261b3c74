"""Predictions on the test split -> scores, computed by the standard measures of each field."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Predictions = Mapping[str, np.ndarray[Any, Any]]


def score(name: str, predictions: Predictions) -> dict[str, float]:
    """Return {name of a score: value} for a metric that a workload's specification names; the first score is the main one.

    `predictions`: arrays by name; N is the number of test samples. Rates are between 0 and 1. Raises UserError for an
    unknown metric.
    """
    if name not in METRICS:
        raise UserError(f"There is no metric '{name}'.{nearest(name, list(METRICS))}")
    return METRICS[name](predictions)


def in_percent(score: str) -> bool:
    """Return whether a score is shown in percent."""
    return score in {"accuracy", "top-5", "masked words", "next sentence", "WER", "CER"}


def more_is_better(score: str) -> bool:
    """Return whether a larger value of a score is better; the others are errors, losses and perplexities."""
    return score in {"accuracy", "top-5", "masked words", "next sentence", "BLEU"}


def _accuracy(predictions: Predictions) -> dict[str, float]:
    """Predictions: truth and predicted int (N,), classes; optional among_five (N,), whether the truth is in the top five."""
    scores = {"accuracy": float(np.mean(predictions["predicted"] == predictions["truth"]))}
    if "among_five" in predictions:
        scores["top-5"] = float(np.mean(predictions["among_five"]))
    return scores


def _language(predictions: Predictions) -> dict[str, float]:
    """Predictions, all (N,): nll, the negative log-likelihood in nats summed over the sample's masked words; words, their
    number; right, how many were predicted correctly; next_right, whether the next-sentence prediction is correct.
    """
    words = float(predictions["words"].sum())
    return {
        "masked words": float(predictions["right"].sum()) / words,
        "perplexity": math.exp(float(predictions["nll"].sum(dtype=np.float64)) / words),
        "next sentence": float(predictions["next_right"].mean()),
    }


def _translation(predictions: Predictions) -> dict[str, float]:
    """Predictions: nll float (N,), in nats summed over the sentence's words; words (N,), their number.

    If translations were searched for: `translation` (the translation) and truth, int32 (N, L), word pieces ended by 3 and padded
    with 0; encoding uint8, the tokenizer's file. BLEU is the corpus score of sacrebleu with its default tokenizer,
    between 0 and 100.
    """
    words = float(predictions["words"].sum())
    scores = {"perplexity": math.exp(float(predictions["nll"].sum(dtype=np.float64)) / words)}
    if "translation" in predictions:
        import sacrebleu
        from tokenizers import Tokenizer

        pieces = Tokenizer.from_buffer(predictions["encoding"].tobytes())
        translated, truth = (
            pieces.decode_batch([_until_end(row) for row in predictions[name].tolist()])
            for name in ("translation", "truth")
        )
        scores["BLEU"] = float(sacrebleu.corpus_bleu(translated, [truth]).score)
    return scores


END_OF_SENTENCE = 3


def _until_end(pieces: list[int]) -> list[int]:
    return pieces[: pieces.index(END_OF_SENTENCE)] if END_OF_SENTENCE in pieces else pieces


def _speech(predictions: Predictions) -> dict[str, float]:
    """Predictions: frames int8 (N, T), the most likely class of each frame; lengths (N,); transcript int (N, L), 0-padded."""
    import jiwer

    recognised = [
        _collapse(frames[:length]) for frames, length in zip(predictions["frames"], predictions["lengths"], strict=True)
    ]
    truth = [_spell(codes[codes > 0]) for codes in predictions["transcript"]]
    return {"WER": float(jiwer.wer(truth, recognised)), "CER": float(jiwer.cer(truth, recognised))}


# Deep Speech 2's 29 classes: the blank, the apostrophe, 26 letters, the space.
LETTERS = "_'ABCDEFGHIJKLMNOPQRSTUVWXYZ "


def _collapse(frames: np.ndarray[Any, Any]) -> str:
    """Greedy CTC decoding: merge repeated classes, then drop blanks."""
    changed = np.diff(frames, prepend=-1) != 0
    return _spell(frames[changed & (frames > 0)])


def _spell(codes: np.ndarray[Any, Any]) -> str:
    return "".join(LETTERS[code] for code in codes.tolist())


def _spectrogram(predictions: Predictions) -> dict[str, float]:
    """Predictions: mel and gate float (N,), the two losses of each utterance."""
    return {"mel loss": float(predictions["mel"].mean()), "gate loss": float(predictions["gate"].mean())}


def _next_token(predictions: Predictions) -> dict[str, float]:
    """Predictions, all (N,): nll, the negative log-likelihood in nats summed over a sample's tokens; tokens, their number; right,
    how many of them were predicted correctly.
    """
    tokens = float(predictions["tokens"].sum())
    return {
        "perplexity": math.exp(float(predictions["nll"].sum(dtype=np.float64)) / tokens),
        "accuracy": float(predictions["right"].sum()) / tokens,
    }


def _regression(predictions: Predictions) -> dict[str, float]:
    """Predictions: predicted and truth, float (N, ...) of one shape. Errors are in the unit of the truth."""
    errors = predictions["predicted"].astype(np.float64) - predictions["truth"]
    return {
        "root mean squared error": float(np.sqrt(np.square(errors).mean())),
        "mean absolute error": float(np.abs(errors).mean()),
    }


def _nothing(_: Predictions) -> dict[str, float]:
    """A network without a metric is not evaluated."""
    return {}


NONE = "none"
METRICS: dict[str, Callable[[Predictions], dict[str, float]]] = {
    NONE: _nothing,
    "accuracy": _accuracy,
    "masked-language": _language,
    "translation": _translation,
    "speech": _speech,
    "spectrogram": _spectrogram,
    "next-token": _next_token,
    "regression": _regression,
}
# Metric -> the arrays that `predictions` of a network must give; the accuracy's are made of the outputs where there is none.
NEEDED = {
    "accuracy": ("truth", "predicted"),
    "masked-language": ("nll", "words", "right", "next_right"),
    "translation": ("nll", "words"),
    "speech": ("frames", "lengths", "transcript"),
    "spectrogram": ("mel", "gate"),
    "next-token": ("nll", "tokens", "right"),
    "regression": ("predicted", "truth"),
}
