"""Beam search: compared with all possible sentences if the beam is wide enough, and with the greedy choice if it has width 1."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard_worker.beam import Beam

PAD, UNKNOWN, BEGIN, END = range(4)
WORDS = 7  # three words and the special ones
FREE = [word for word in range(WORDS) if word not in (PAD, BEGIN)]

seeds = st.integers(0, 2**32 - 1)


def chain(seed: int, sentences: int = 1):
    """Return log-probabilities of a word given the previous one, with a different table for every sentence."""
    table = np.random.default_rng(seed).standard_normal((sentences, WORDS, WORDS)) * 2
    return table - np.log(np.exp(table).sum(axis=2, keepdims=True))


def scorer(table):
    def score(targets, place):
        return table[np.arange(len(targets)), targets[:, place - 1]].copy()

    return score


def likelihood(table, words):
    return sum(table[before, word] for before, word in zip([BEGIN, *words], words, strict=False))


def all_sentences(longest: int):
    for count in range(1, longest):
        for words in itertools.product(FREE, repeat=count):
            if END not in words[:-1] and (words[-1] == END or count == longest - 1):
                yield list(words)


def read(row):
    words = [int(word) for word in row[1:] if word != PAD]
    assert row[0] == BEGIN
    assert words == row[1 : 1 + len(words)].tolist(), "only padding may follow the words"
    return words


@given(seeds)
def test_a_beam_as_wide_as_the_choice_of_first_words_finds_the_best_of_all_short_sentences(seed):
    table = chain(seed, 2)
    found = Beam(len(FREE), BEGIN, END, PAD).search(scorer(table), 2, 3)
    for own, row in zip(table, found, strict=True):
        best = max(all_sentences(3), key=lambda words: likelihood(own, words) / ((5 + len(words)) / 6) ** 0.6)
        assert read(row) == best


@given(seeds, st.integers(2, 9))
def test_one_hypothesis_is_the_greedy_choice(seed, longest):
    table = chain(seed)
    greedy, word = [], BEGIN
    while word != END and len(greedy) < longest - 1:
        word = max(FREE, key=lambda each: table[0, word, each])
        greedy.append(word)
    assert read(Beam(1, BEGIN, END, PAD).search(scorer(table), 1, longest)[0]) == greedy


@given(seeds, st.integers(1, 5), st.integers(2, 8))
def test_a_sentence_does_not_depend_on_the_others_in_its_batch(seed, width, longest):
    table, beam = chain(seed, 3), Beam(width, BEGIN, END, PAD)
    alone = [beam.search(scorer(table[k : k + 1]), 1, longest)[0] for k in range(3)]
    assert np.array_equal(beam.search(scorer(table), 3, longest), np.stack(alone))


@given(seeds, st.integers(1, 5), st.integers(2, 8))
def test_only_padding_follows_the_end_and_special_words_are_never_chosen(seed, width, longest):
    words = read(Beam(width, BEGIN, END, PAD).search(scorer(chain(seed)), 1, longest)[0])
    assert END not in words[:-1]
    assert BEGIN not in words


@pytest.mark.parametrize(("normalisation", "expected"), [(0.0, [END]), (5.0, [4, 4, END])])
def test_normalisation_decides_between_short_and_long(normalisation, expected):
    share = np.full((1, WORDS, WORDS), 1e-9)
    share[0, BEGIN, [END, 4]] = 0.5, 0.4
    share[0, 4, [END, 4]] = 0.5, 0.5
    beam = Beam(4, BEGIN, END, PAD, normalisation)
    assert read(beam.search(scorer(np.log(share)), 1, 4)[0]) == expected


def test_the_network_runs_only_while_a_sentence_is_open():
    calls = []

    def score(targets, place):
        calls.append(place)
        scores = np.full((len(targets), WORDS), -50.0)
        scores[:, END] = 0.0
        return scores

    Beam(1, BEGIN, END, PAD).search(score, 4, 20)
    assert calls == [1]
