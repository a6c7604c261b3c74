"""Mistakes and right variants that set no limit: how many of the mistakes a certificate rejects, and that it rejects nothing right.

`pytest tests/certificates/test_held_apart.py -rP` prints the table of `tests/certificates/README.md` again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tomllib
from decides import Sources
from mutant_bench import BENCH_FILES, REFERENCE, Bench, Mutant, mutant_of, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.conformance, pytest.mark.slow]

FOLDER = Path(__file__).parent / "held_apart"


def read(name: str) -> list[Mutant]:
    """Return the mutants of a table, in their full procedure: what is beyond the limit runs everything that may still certify it."""
    table = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return [mutant_of({"preset": "tiny", "names": "", "escalated": True} | raw) for raw in table["mutant"]]


MISTAKES, RIGHT = read("mistakes"), read("right_variants")


@pytest.fixture(scope="module")
def bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, interpreter: Callable[[str], Path]
) -> Iterator[Bench]:
    yield from running(__name__, request, tmp_path_factory.mktemp("held-apart"), interpreter)


def decided(mutant: Mutant) -> Sources:
    """Return what decides a certificate besides the mutant itself."""
    names = tuple(sorted({mutant.framework, REFERENCE}))
    return Sources(
        f"{mutant.workload}, {mutant.framework}", names, (mutant.workload,), computing=True, files=BENCH_FILES
    )


def named(mutant: Mutant) -> str:
    return f"{mutant.workload} in {mutant.framework}: {mutant.name}"


@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("mutant", MISTAKES, ids=named)
def test_a_mistake_that_set_no_limit_is_rejected(bench: Bench, mutant: Mutant) -> None:
    found = bench.certificates[mutant].result()
    print(f"{named(mutant)} | {found.first} | {found.worst_units:.0f} | {found.sentence}")
    assert not found.passed
    assert found.first, "a process that fails is no mistake that a certificate has found"


@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("mutant", RIGHT, ids=named)
def test_a_right_variant_is_certified(bench: Bench, mutant: Mutant) -> None:
    found = bench.certificates[mutant].result()
    print(f"{named(mutant)} | {found.worst} | {found.worst_units:.0f} | {found.sentence}")
    assert found.passed, found.sentence


def test_there_are_fifty_mistakes_and_twenty_right_variants_in_all_frameworks() -> None:
    assert len(MISTAKES) >= 50
    assert len(RIGHT) >= 20
    for table in (MISTAKES, RIGHT):
        assert {mutant.framework for mutant in table} == {"jax", "mindspore", "mxnet", "pytorch", "tensorflow"}
