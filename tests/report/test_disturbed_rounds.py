"""Warnings that differ in their figures alone are one with ranges: reasons of disturbed rounds, and many of one kind."""

from __future__ import annotations

import pytest

from steelyard.analysis import notices, warnings


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (
            {"other processes used 0.05 cores", "other processes used 0.6 cores", "other processes used 0.07 cores"},
            ["other processes used 0.05 to 0.6 cores"],
        ),
        (
            {"the hypervisor withheld 9.2% of the CPU time", "the hypervisor withheld 11.2% of the CPU time"},
            ["the hypervisor withheld 9.2% to 11.2% of the CPU time"],
        ),
        (
            {"0.5 MiB of memory were swapped", "12.5 MiB of memory were swapped"},
            ["0.5 to 12.5 MiB of memory were swapped"],
        ),
        (
            {"on node b2 other processes used 0.1 cores", "on node b3 other processes used 0.1 cores"},
            ["on node b2 other processes used 0.1 cores", "on node b3 other processes used 0.1 cores"],
        ),
        (
            {
                "a worker stood still for 0.5 s of 11.7 s that were counted",
                "a worker stood still for 14.3 s of 9 s that were counted",
            },
            ["a worker stood still for 0.5 to 14.3 s of 9 to 11.7 s that were counted"],
        ),
        ({"the GPU was throttled: heat"}, ["the GPU was throttled: heat"]),
    ],
)
def test_figures_of_equal_reasons_are_a_range(reasons: set[str], said: list[str]) -> None:
    assert warnings._in_ranges(reasons) == said


def _found(name: str, *sentences: str) -> list[tuple[str, tuple[str, ...]]]:
    given = [notices.ResultWarning(name, "warning", f"W{place}", each, "") for place, each in enumerate(sentences)]
    (notice,) = notices.gather(given)
    return list(notice.findings)


def test_many_sentences_that_differ_in_their_figures_alone_are_one() -> None:
    slower = [f"Steps got slower; this may bias the mean by about {bias} %." for bias in ("3", "154", "1,200", "2.5")]
    assert _found("Unsteady", *slower, "Steps got faster.") == [
        ("Steps got slower; this may bias the mean by about 2.5 to 1,200 %.", ("W0", "W1", "W2", "W3")),
        ("Steps got faster.", ("W4",)),
    ]


def test_a_comma_after_a_figure_is_no_part_of_it() -> None:
    assert warnings._in_ranges({"cores 1, 2 were busy", "cores 1, 3 were busy"}) == ["cores 1, 2 to 3 were busy"]


def test_few_sentences_keep_their_figures() -> None:
    slower = [f"It may bias the mean by about {bias} %." for bias in (3, 154, 2)]
    assert [sentence for sentence, _ in _found("Unsteady", *slower)] == slower


def test_numbers_of_rounds_are_no_range() -> None:
    lost = [f"Round {number} of line was repeated because node b left." for number in range(1, 6)]
    assert [sentence for sentence, _ in _found("LostNodes", *lost)] == lost
