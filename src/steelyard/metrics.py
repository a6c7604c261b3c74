"""What was answered on the test split -> scores, by the measures of each field. The first score of a metric is its headline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Answers = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Metric:
    """`score` maps answers to {name of a score: value}; shares are between 0 and 1 and are said in percent."""

    score: Callable[[Answers], dict[str, float]]
    higher_is_better: bool = True


def metric(name: str) -> Metric:
    """Return a metric by the name that specifications use."""
    if name not in METRICS:
        raise UserError(f"There is no metric '{name}'.{nearest(name, list(METRICS))}")
    return METRICS[name]


def is_share(score: str) -> bool:
    """Say whether a score is said in percent."""
    return score in {"accuracy", "top-5", "masked words", "next sentence", "WER", "CER"}


def confusion(answers: Answers) -> np.ndarray[Any, Any]:
    """Return int64 (classes, classes): rows are true classes, columns the answered ones."""
    truth, answer = answers["truth"].astype(np.int64), answers["answer"].astype(np.int64)
    classes = int(max(truth.max(), answer.max())) + 1
    return np.bincount(truth * classes + answer, minlength=classes**2).reshape(classes, classes)


def _accuracy(answers: Answers) -> dict[str, float]:
    matrix = confusion(answers)
    scores = {"accuracy": float(np.trace(matrix) / matrix.sum())}
    if "among_five" in answers:
        scores["top-5"] = float(np.mean(answers["among_five"]))
    return scores


def _language(answers: Answers) -> dict[str, float]:
    """Answers: nll float (N,) summed over the sample's words, words (N,), right (N,); next_right (N,)."""
    words = float(answers["words"].sum())
    return {
        "masked words": float(answers["right"].sum()) / words,
        "perplexity": math.exp(float(answers["nll"].sum(dtype=np.float64)) / words),
        "next sentence": float(answers["next_right"].mean()),
    }


def _translation(answers: Answers) -> dict[str, float]:
    """Answers: nll float (N,) summed over the sentence's words, words (N,)."""
    words = float(answers["words"].sum())
    return {"perplexity": math.exp(float(answers["nll"].sum(dtype=np.float64)) / words)}


def _speech(answers: Answers) -> dict[str, float]:
    """Answers: frames int8 (N, T), the best class of every frame; lengths (N,); transcript int (N, L), 0 after its end."""
    import jiwer

    said = [_collapse(frames[:length]) for frames, length in zip(answers["frames"], answers["lengths"], strict=True)]
    truth = [_spell(codes[codes > 0]) for codes in answers["transcript"]]
    return {"WER": float(jiwer.wer(truth, said)), "CER": float(jiwer.cer(truth, said))}


# Deep Speech 2's 29 classes: the blank, the apostrophe, 26 letters, the space.
LETTERS = "_'ABCDEFGHIJKLMNOPQRSTUVWXYZ "


def _collapse(frames: np.ndarray[Any, Any]) -> str:
    """Greedy decoding: repeats are one letter, blanks none."""
    changed = np.diff(frames, prepend=-1) != 0
    return _spell(frames[changed & (frames > 0)])


def _spell(codes: np.ndarray[Any, Any]) -> str:
    return "".join(LETTERS[code] for code in codes.tolist())


def _spectrogram(answers: Answers) -> dict[str, float]:
    """Answers: mel and gate float (N,), the losses of each utterance."""
    return {"mel loss": float(answers["mel"].mean()), "gate loss": float(answers["gate"].mean())}


METRICS = {
    "accuracy": Metric(_accuracy),
    "masked-language": Metric(_language),
    "translation": Metric(_translation, higher_is_better=False),
    "speech": Metric(_speech, higher_is_better=False),
    "spectrogram": Metric(_spectrogram, higher_is_better=False),
}
