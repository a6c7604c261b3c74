"""The book of a run: the last attempt at a round counts, in whatever order the attempts are read."""

from __future__ import annotations

from pathlib import Path

import invented_trials
from hypothesis import given
from hypothesis import strategies as st

from steelyard.measure import rounds
from steelyard.results import trials

# (arm, round, attempt) -> how it ended; every attempt of a round is there once.
OUTCOMES = st.dictionaries(
    st.tuples(st.sampled_from(["fake/a", "dummy/b"]), st.integers(1, 4), st.integers(0, 11)),
    st.sampled_from(["done", "error", "nothing"]),
    max_size=14,
)


def _trial(arm: str, number: int, attempt: int, ending: str) -> trials.Trial:
    folder = Path(f"/run/trials/r{number:02d}.{attempt}-{arm}")
    return trials.replay(
        folder, invented_trials.job(folder, number, attempt, arm), invented_trials.events(ending=ending)
    )


@given(outcomes=OUTCOMES, data=st.data())
def test_the_last_ended_attempt_at_a_round_is_kept_in_any_order(
    outcomes: dict[tuple[str, int, int], str], data: st.DataObject
) -> None:
    made = [_trial(*key, ending) for key, ending in outcomes.items()]
    book = rounds.read_book(data.draw(st.permutations(made)))
    ended = {key: ending for key, ending in outcomes.items() if ending != "nothing"}
    last = {(arm, number): attempt for arm, number, attempt in sorted(ended)}
    for (arm, number), attempt in last.items():
        done = ended[arm, number, attempt] == "done"
        kept = book.kept.get(f"line:small/{arm}", {}).get(number)
        assert book.has(f"line:small/{arm}", number) == done
        assert (kept is not None) == done
        if kept:
            assert kept.job.trial == f"{number}.{attempt}/line:small/{arm}"
    assert sum(map(len, book.kept.values())) == sum(
        ended[arm, number, attempt] == "done" for (arm, number), attempt in last.items()
    )
    failing = {f"line:small/{arm}" for (arm, number), attempt in last.items() if ended[arm, number, attempt] == "error"}
    assert book.failed.keys() == failing


def test_what_is_forgotten_is_neither_kept_nor_failed() -> None:
    book = rounds.read_book([_trial("fake/a", 1, 0, "done"), _trial("fake/a", 2, 0, "error")])
    assert book.failed
    book.forget(lambda trial: not trial.done)
    assert not book.failed
    assert book.has("line:small/fake/a", 1)
    assert not book.has("line:small/fake/a", 2)


def test_trials_that_certified_are_in_no_round() -> None:
    from dataclasses import replace

    trial = _trial("fake/a", 0, 0, "done")
    book = rounds.read_book([replace(trial, job=replace(trial.job, task="certify"))])
    assert not book.kept.get("line:small/fake/a")
