"""Figures in README and docs are those that the code gives, or name the command that computes them."""

from __future__ import annotations

import pytest
from benchmarks import claims


@pytest.mark.parametrize("claim", claims.CHEAP, ids=range(len(claims.CHEAP)))
def test_a_figure_that_is_cheap_to_compute_is_that_of_its_sentence(claim: claims.Cheap) -> None:
    assert claim.sentence() in claims.text_of(claim.file)


@pytest.mark.parametrize("claim", claims.DEAR, ids=range(len(claims.DEAR)))
def test_a_figure_that_takes_long_names_a_command_that_there_is(claim: claims.Dear) -> None:
    assert claims.agrees(claim, claims.text_of(claim.file))


def test_another_figure_or_command_is_noticed() -> None:
    cheap, dear = claims.CHEAP[0], claims.DEAR[0]
    text = claims.text_of(cheap.file)
    assert claims.agrees(cheap, text)
    assert not claims.agrees(cheap, text.replace("59 %", "58 %"))
    assert not claims.agrees(
        claims.Dear(dear.file, dear.sentence, "python -m benchmarks nothing"), claims.text_of(dear.file)
    )
    assert not claims.exists("pytest tests/statistics/test_nothing.py")


def test_the_table_names_the_sentence_and_what_is_computed_now(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = claims.Cheap("README.md", lambda: "steelyard has 1,000 frameworks")
    monkeypatch.setattr(claims, "CHEAP", (wrong,))
    row, *others = claims.measure()
    assert (row.ok, len(others)) == (False, len(claims.DEAR))
    assert row.name == "README.md: steelyard has 1,000 frameworks"
    assert row.detail == "the text does not say, as computed now: steelyard has 1,000 frameworks"
    assert all(each.ok for each in others)
