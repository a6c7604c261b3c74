"""Which pairs of cases a comparison is about first of all: each way to spread a training, and the single process beside it."""

from collections.abc import Sequence

from steelyard_worker.case import Case, differences
from steelyard_worker.strategy import PINNED, SINGLE, name_of, parts_of


def pairs(cases: Sequence[Case]) -> frozenset[frozenset[str]]:
    """Return pairs of ids. The single process of a case is that of its framework and mode from which it differs least.

    Of two that differ as little, it is the one that may use as many cores as it has threads.
    """
    singles = [case for case in cases if name_of(case.strategy) == SINGLE]
    found = set()
    for case in cases:
        own = _framework_and_mode(case)
        alike = [each for each in singles if _framework_and_mode(each) == own]
        if alike and parts_of(case.strategy) > 1:
            single = min(alike, key=lambda each: (len(differences(each, case)), each.strategy != PINNED))
            found.add(frozenset((single.id, case.id)))
    return frozenset(found)


def _framework_and_mode(case: Case) -> tuple[str, str]:
    return case.framework, case.settings.mode
