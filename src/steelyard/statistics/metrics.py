"""What was answered on the test split -> scores, by the measures of each field."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Predictions = Mapping[str, np.ndarray[Any, Any]]


def score(name: str, predictions: Predictions) -> dict[str, float]:
    """Return {name of a score: value} by the metric that a specification names; its first score is the headline.

    Shares are between 0 and 1 and are said in percent.
    """
    if name not in METRICS:
        raise UserError(f"There is no metric '{name}'.{nearest(name, list(METRICS))}")
    return METRICS[name](predictions)


def is_share(score: str) -> bool:
    """Say whether a score is said in percent."""
    return score in {"accuracy", "top-5", "masked words", "next sentence", "WER", "CER"}


def confusion(predictions: Predictions) -> np.ndarray[Any, Any]:
    """Return int64 (classes, classes): rows are true classes, columns the answered ones."""
    truth, predicted = predictions["truth"].astype(np.int64), predictions["predicted"].astype(np.int64)
    classes = int(max(truth.max(), predicted.max())) + 1
    return np.bincount(truth * classes + predicted, minlength=classes**2).reshape(classes, classes)


def _accuracy(predictions: Predictions) -> dict[str, float]:
    matrix = confusion(predictions)
    scores = {"accuracy": float(np.trace(matrix) / matrix.sum())}
    if "among_five" in predictions:
        scores["top-5"] = float(np.mean(predictions["among_five"]))
    return scores


def _language(predictions: Predictions) -> dict[str, float]:
    """Predictions: nll float (N,) summed over the sample's words, words (N,), right (N,); next_right (N,)."""
    words = float(predictions["words"].sum())
    return {
        "masked words": float(predictions["right"].sum()) / words,
        "perplexity": math.exp(float(predictions["nll"].sum(dtype=np.float64)) / words),
        "next sentence": float(predictions["next_right"].mean()),
    }


def _translation(predictions: Predictions) -> dict[str, float]:
    """Predictions: nll float (N,) summed over the sentence's words, words (N,).

    With what the network wrote: said and truth int32 (N, L), word pieces ended by 3 and padded by 0, and encoding uint8, the
    file that says what pieces mean. BLEU is that of the corpus by sacrebleu's own tokenizer, between 0 and 100.
    """
    words = float(predictions["words"].sum())
    scores = {"perplexity": math.exp(float(predictions["nll"].sum(dtype=np.float64)) / words)}
    if "said" in predictions:
        import sacrebleu
        from tokenizers import Tokenizer

        pieces = Tokenizer.from_buffer(predictions["encoding"].tobytes())
        said, truth = (
            pieces.decode_batch([_until_end(row) for row in predictions[name].tolist()]) for name in ("said", "truth")
        )
        scores["BLEU"] = float(sacrebleu.corpus_bleu(said, [truth]).score)
    return scores


END_OF_SENTENCE = 3


def _until_end(pieces: list[int]) -> list[int]:
    return pieces[: pieces.index(END_OF_SENTENCE)] if END_OF_SENTENCE in pieces else pieces


def _speech(predictions: Predictions) -> dict[str, float]:
    """Predictions: frames int8 (N, T), the best class of every frame; lengths (N,); transcript int (N, L), 0 after its end."""
    import jiwer

    said = [
        _collapse(frames[:length]) for frames, length in zip(predictions["frames"], predictions["lengths"], strict=True)
    ]
    truth = [_spell(codes[codes > 0]) for codes in predictions["transcript"]]
    return {"WER": float(jiwer.wer(truth, said)), "CER": float(jiwer.cer(truth, said))}


# Deep Speech 2's 29 classes: the blank, the apostrophe, 26 letters, the space.
LETTERS = "_'ABCDEFGHIJKLMNOPQRSTUVWXYZ "


def _collapse(frames: np.ndarray[Any, Any]) -> str:
    """Greedy decoding: repeats are one letter, blanks none."""
    changed = np.diff(frames, prepend=-1) != 0
    return _spell(frames[changed & (frames > 0)])


def _spell(codes: np.ndarray[Any, Any]) -> str:
    return "".join(LETTERS[code] for code in codes.tolist())


def _spectrogram(predictions: Predictions) -> dict[str, float]:
    """Predictions: mel and gate float (N,), the losses of each utterance."""
    return {"mel loss": float(predictions["mel"].mean()), "gate loss": float(predictions["gate"].mean())}


METRICS: dict[str, Callable[[Predictions], dict[str, float]]] = {
    "accuracy": _accuracy,
    "masked-language": _language,
    "translation": _translation,
    "speech": _speech,
    "spectrogram": _spectrogram,
}
