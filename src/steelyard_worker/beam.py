"""Beam search over a network that predicts the next word; frameworks differ only in the forward pass that they provide.

The network processes a whole target at once and never uses later words, so one pass over the words so far scores the next one.
That costs one pass per word and hypothesis, which is acceptable for an evaluation but not for production.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Integers = np.ndarray[Any, np.dtype[np.int32]]
    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Score = Callable[[Integers, int], Floats]


@dataclass
class _Hypotheses:
    """`width` hypotheses for each of `count` sentences; all arrays except `targets` are (width, count)."""

    targets: Integers  # (width, count, longest), with the begin word, padded
    likelihoods: Floats  # logarithm for the whole hypothesis; -inf where there is none
    lengths: np.ndarray[Any, Any]  # number of words, the end word included, without the begin word
    ended: np.ndarray[Any, Any]

    def is_open(self, k: int) -> bool:
        """Return whether hypothesis k of any sentence exists and has not ended."""
        return not (self.ended[k] | np.isneginf(self.likelihoods[k])).all()


@dataclass(frozen=True)
class Beam:
    """`width` hypotheses per
    sentence; `normalisation` is the alpha of Wu et al. 2016, equation 14, without its coverage term.
    """

    width: int
    begin: int
    end: int
    pad: int
    normalisation: float = 0.6

    def search(self, score: Score, count: int, longest: int) -> Integers:
        """Return the best hypothesis of each of `count` sentences, int32 (count, longest): begin word, words, end word if any,
        padding.

        `score(targets, place)` maps targets int32 (count, longest) to the log-probabilities (count, vocabulary) of the word at
        `place`, given the words before it. The vocabulary must be larger than the beam.
        """
        shape = (self.width, count)
        targets = np.full((*shape, longest), self.pad, np.int32)
        targets[:, :, 0] = self.begin
        likelihoods = np.full(shape, -np.inf)
        likelihoods[0] = 0.0  # all hypotheses start the same, so one is enough
        found = _Hypotheses(targets, likelihoods, np.zeros(shape, np.int64), np.zeros(shape, bool))
        for place in range(1, longest):
            if not any(found.is_open(k) for k in range(self.width)):
                break
            found = self._best(found, *self._continuations(score, found, place), place)
        best = self._normalised(found.likelihoods, found.lengths).argmax(axis=0)
        return np.asarray(found.targets[best, np.arange(count)])

    def _continuations(self, score: Score, found: _Hypotheses, place: int) -> tuple[Floats, Integers]:
        """Return likelihoods and words (count, width, width): the best next words of every hypothesis."""
        width, count = found.likelihoods.shape
        likelihoods = np.full((count, width, width), -np.inf)
        words = np.full((count, width, width), self.pad, np.int32)
        for k in range(width):
            if found.is_open(k):
                scores = score(found.targets[k], place)
                scores[:, [self.pad, self.begin]] = -np.inf  # the network was not trained to exclude these
                words[:, k] = np.argpartition(scores, -width, axis=1)[:, -width:]
                likelihoods[:, k] = found.likelihoods[k][:, None] + np.take_along_axis(scores, words[:, k], axis=1)
            ended = found.ended[k]
            likelihoods[ended, k], words[ended, k] = -np.inf, self.pad
            likelihoods[ended, k, 0] = found.likelihoods[k, ended]  # ended hypotheses do not change
        return likelihoods, words

    def _best(self, found: _Hypotheses, likelihoods: Floats, words: Integers, place: int) -> _Hypotheses:
        width, count = found.likelihoods.shape
        lengths = np.where(found.ended, found.lengths, place)
        normalised = self._normalised(likelihoods, lengths.T[:, :, None]).reshape(count, -1)
        chosen = np.argsort(-normalised, axis=1, kind="stable")[:, :width]
        parents, rows = (chosen // width).T, np.arange(count)
        word = np.take_along_axis(words.reshape(count, -1), chosen, axis=1).T
        targets = found.targets[parents, rows]
        targets[:, :, place] = word  # padding after an end
        return _Hypotheses(
            targets,
            np.take_along_axis(likelihoods.reshape(count, -1), chosen, axis=1).T,
            lengths[parents, rows],
            found.ended[parents, rows] | (word == self.end),
        )

    def _normalised(self, likelihoods: Floats, lengths: np.ndarray[Any, Any]) -> Floats:
        return np.asarray(likelihoods / ((5.0 + lengths) / 6.0) ** self.normalisation)
