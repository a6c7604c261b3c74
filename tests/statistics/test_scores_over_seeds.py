"""Scores of two contenders over seeds: paired where both trained on the same, and without an interval where there are few."""

from __future__ import annotations

from math import inf

import pytest

from steelyard.statistics.claims import claim, judge
from steelyard.statistics.scores import ratio

BETTER = claim("accuracy", "order", ordered=True, value=None)
EQUAL = claim("accuracy", "equal", ordered=True, value=None)
# Seeds differ much more than the two contenders do.
A, B = {1: 0.91, 2: 0.84, 3: 0.88}, {1: 0.90, 2: 0.831, 3: 0.869}


def test_scores_are_paired_by_seed():
    found = ratio(A, B, more_is_better=True)
    assert (found.rounds, found.low > 1) == (3, True)
    unpaired = ratio(A, {number + 10: value for number, value in B.items()}, more_is_better=True)
    assert unpaired.low < 1 < unpaired.high
    assert unpaired.value == pytest.approx(found.value)


def test_of_a_loss_the_smaller_one_is_better():
    assert ratio(A, B, more_is_better=False).high < 1


@pytest.mark.parametrize(
    ("a", "b", "said", "word"),
    [
        (A, B, BETTER, "same order"),
        (B, A, BETTER, "opposite order"),
        (A, A, BETTER, "open"),
        (A, B, EQUAL, "same size"),
        (A, {key: value * 0.9 for key, value in A.items()}, EQUAL, "other size"),
    ],
)
def test_claims_on_accuracy_get_the_words_of_other_claims(a, b, said, word):
    assert judge(said, ratio(a, b, more_is_better=True)) == word


@pytest.mark.parametrize("seeds", [1, 2])
def test_few_seeds_leave_a_claim_open(seeds):
    few = [{number: scores[number] for number in range(1, seeds + 1)} for scores in (A, B)]
    found = ratio(*few, more_is_better=True)
    assert (found.low, found.high, found.rounds) == (0, inf, seeds)
    assert {judge(said, found) for said in (BETTER, EQUAL)} == {"open"}


@pytest.mark.parametrize(("a", "b"), [({}, A), (A, {}), ({1: 0.0, 2: 0.5, 3: 0.5}, B)])
def test_without_scores_above_zero_there_is_no_ratio(a, b):
    assert ratio(a, b, more_is_better=True) is None


@pytest.mark.parametrize("relation", ["", "about", "not given"])
def test_a_score_of_another_machine_is_no_claim(relation):
    assert claim("accuracy", relation, ordered=True, value=93.0) is None
