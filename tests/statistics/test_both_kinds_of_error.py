"""The simulation of wrong words of both kinds in one table, and that it notices a rule that is wrong too often."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from benchmarks import noises, scopes

from steelyard.statistics.decision import DecisionPlan

NORMAL = partial(noises.normal, scatter=0.01)


def shares(counts: tuple[int, ...] = (2, 3)) -> scopes.Shares:
    return scopes.shares(np.random.default_rng(1), 300, NORMAL, counts)


def test_any_wrong_word_is_a_difference_or_an_equality() -> None:
    found = shares()
    assert max(found.different, found.equal) <= found.either <= found.different + found.equal
    assert found.equal > 0, "pairs that differ by the whole margin are now and then called equal"
    assert scopes._row("normal", found, 300).ok


def test_a_rule_that_is_wrong_too_often_misses_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "PLAN", DecisionPlan(error=0.5))
    assert not scopes._row("normal", shares(), 300).ok


def test_the_scatter_is_that_of_the_noise() -> None:
    values = NORMAL(np.random.default_rng(1), (300, 3))
    assert scopes._scatter(values) == pytest.approx(0.01, rel=0.05)


def test_noise_has_its_own_scatter_and_recordings_three_more() -> None:
    names = [name for name, _, _ in scopes.kinds(noises.RECORDED)]
    assert len(set(names)) == len(names)
    for recording in noises.recordings(noises.RECORDED):
        for scatter in ("1 %", "5 %", "15 %"):
            assert f"recorded: {recording.name}; scaled to {scatter}" in names


def test_large_tables_have_fewer_families_and_a_wider_limit() -> None:
    assert (scopes._families(2000, 5), scopes._families(2000, 12)) == (2000, 200)
    few, many = (scopes._row("normal", scopes.Shares(0.0, 0.0, 0.06), count) for count in (200, 10_000))
    assert few.ok
    assert not many.ok
