"""Every bug listed in mutants/ is rejected by the certificate, which names the right tensor or step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import tomllib
from decides import Sources
from mutant_bench import BENCH_FILES, REFERENCE, Bench, Mutant, mutant_of, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.conformance

# Frameworks that compile take ten seconds to a minute for each of these networks.
LONG_TO_COMPILE = ("deepspeech2", "gnmt", "inceptionv3", "tacotron2")
TABLES = sorted((Path(__file__).parent / "mutants").glob("*.toml"))


def read_mutants() -> list[Mutant]:
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in TABLES]
    return [mutant_of({"preset": "tiny"} | table | raw) for table in tables for raw in table["mutant"]]


def is_slow(mutant: Mutant) -> bool:
    """Return whether it says so, or a framework compiles its network for long; PyTorch runs other bugs of it."""
    return mutant.slow or (mutant.workload in LONG_TO_COMPILE and mutant.framework != REFERENCE)


MUTANTS = read_mutants()


def decided(mutant: Mutant) -> Sources:
    """Return what decides a certificate besides the mutant itself."""
    names = tuple(sorted({mutant.framework, REFERENCE}))
    return Sources(
        f"{mutant.workload}, {mutant.framework}", names, (mutant.workload,), computing=True, files=BENCH_FILES
    )


def unchanged() -> list[Mutant]:
    """Return the unmodified code of every mutant, which must be certified: a bug causes the rejection, and no ReLU near zero.

    Of a batch of the preset's own size in PyTorch only; of a larger one, where more is compared, in the mutant's framework.
    """
    found: dict[tuple[str, str, str, int, int, str], bool] = {}
    for each in MUTANTS:
        framework = each.framework if each.batch else REFERENCE
        key = each.task, each.workload, each.preset, each.seed, each.batch, framework
        found[key] = found.get(key, True) and bool(each.batch) and is_slow(each)
    return [
        Mutant("unchanged", workload, preset, framework, (), "", None, {}, seed, bool(batch), batch, task, "", slow)
        for (task, workload, preset, seed, batch, framework), slow in sorted(found.items())
    ]


def marked(mutants: list[Mutant]) -> list[Any]:
    """Return them as parameters of a test."""
    return [pytest.param(each, marks=[pytest.mark.slow] if is_slow(each) else []) for each in mutants]


@pytest.fixture(scope="module")
def bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, interpreter: Callable[[str], Path]
) -> Iterator[Bench]:
    yield from running(__name__, request, tmp_path_factory.mktemp("mutants"), interpreter)


@pytest.mark.decided(by=decided)
@pytest.mark.parametrize(
    "mutant",
    marked(MUTANTS),
    ids=lambda m: f"{m.task}, {m.workload}: {m.name}",
)
def test_a_bug_is_rejected_and_its_place_is_named(
    bench: Bench, mutant: Mutant, record_property: Callable[[str, object], None]
) -> None:
    found = bench.certificates[mutant].result()
    record_property("sentence", found.sentence)
    print(
        f"{mutant.workload}, {mutant.framework}: {mutant.name}: {found.sentence} Worst: {found.worst_units:.0f} units."
    )
    assert not found.passed
    sentence = found.sentence.replace('"', "")  # around the names of tensors
    assert mutant.names.lower() in sentence.lower()
    if mutant.inner:
        assert f"The first inner tensor that differs is {mutant.inner}:" in sentence


@pytest.mark.decided(by=decided)
@pytest.mark.parametrize(
    "mutant",
    marked(unchanged()),
    ids=lambda m: f"{m.task}, {m.workload}: {m.preset}" + (f", batch {m.batch} in {m.framework}" if m.batch else ""),
)
def test_an_unmodified_copy_is_certified(bench: Bench, mutant: Mutant) -> None:
    found = bench.certificates[mutant].result()
    assert found.passed, found.sentence


@pytest.mark.parametrize("family", ["resnet18", "lstm-imdb", "bert"])
def test_every_family_has_at_least_twelve_mutants(family: str) -> None:
    assert sum(mutant.workload == family for mutant in MUTANTS) >= 12
