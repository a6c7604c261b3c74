"""How often a measurement gets which word, if the true ratio, the published one and the scatter of processes are known."""

from __future__ import annotations

from collections import Counter
from zlib import crc32

import numpy as np

from steelyard.statistics.claims import Claim, judge, near
from steelyard.statistics.intervals import ratio_interval


def shares(published: float, true: float, scatter: float, rounds: int, count: int) -> dict[str, float]:
    """Return the share of `count` simulated runs that get each word for "faster by this ratio".

    `scatter`: relative standard deviation of processes, which both sides have.
    """
    random = np.random.default_rng(crc32(f"{published} {true} {scatter} {rounds}".encode()))
    said, words = Claim(published, published, ordered=True), Counter[str]()
    for _ in range(count):
        one, other = np.exp(scatter * random.standard_normal((2, rounds)))
        measured = ratio_interval(dict(enumerate(other * true)), dict(enumerate(one)))
        assert measured
        words[judge(said, measured)] += 1
    return {word: number / count for word, number in words.items()}


def is_wrong(word: str, published: float, true: float) -> bool:
    """Return whether a word is untrue where the ratio is known; the words for "it does not tell" never are."""
    low, high = near(Claim(published, published, ordered=True)) or (0.0, 0.0)
    return {
        "same size": not low <= true <= high,
        "other size": low <= true <= high,
        "same order": true <= 1,
        "opposite order": true >= 1,
    }.get(word, False)
