"""A check that was never seen to fail is no check: every mistake listed in mutants/ is rejected, at the right place."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import subjects

from steelyard import frameworks, launch
from steelyard.certificates import reference
from steelyard.certificates.record import Certificate
from steelyard.certificates.reference import Proceedings

pytestmark = pytest.mark.conformance

AT_ONCE = 2
TABLES = sorted((Path(__file__).parent / "mutants").glob("*.toml"))


@dataclass(frozen=True)
class Mutant:
    """One mistake: `edits` are (file in the worker, text, replacement), `names` is what the certificate must say."""

    name: str
    workload: str
    preset: str
    framework: str
    edits: tuple[tuple[str, str, str], ...]
    names: str
    optimizer: dict[str, Any] | None

    @property
    def group(self) -> str:
        """What shares a reference."""
        return f"{self.workload}-{self.preset}-{self.optimizer and self.optimizer['name']}"


def read_mutants() -> list[Mutant]:
    found = []
    for table in (tomllib.loads(path.read_text(encoding="utf-8")) for path in TABLES):
        for raw in table["mutant"]:
            edits = tuple(tuple(edit) for edit in raw["edits"])
            preset = raw.get("preset", table["preset"])
            found.append(
                Mutant(raw["name"], table["workload"], preset, raw["framework"], edits, raw["names"], raw.get("optimizer"))
            )
    return found


MUTANTS = read_mutants()


def copy_worker(folder: Path) -> Path:
    copied = folder / "steelyard_worker"
    shutil.copytree(frameworks.WORKER, copied, ignore=shutil.ignore_patterns("__pycache__"))
    return copied


def mutate(worker: Path, mutant: Mutant) -> None:
    for name, text, replacement in mutant.edits:
        path = worker / name
        source = path.read_text(encoding="utf-8")
        assert source.count(text) == 1, f"{mutant.name}: {name} holds {text!r} {source.count(text)} times; mend the mutant"
        path.write_text(source.replace(text, replacement), encoding="utf-8")


def run(task: reference.Task, python: Path, worker: Path = frameworks.WORKER) -> None:
    launch.launch(task.job, python, lambda event: None, launch.Guard(), worker)


class Bench:
    """Runs mutants two at a time, and each reference once."""

    def __init__(self, folder: Path, interpreter: Callable[[str], Path], pool: ThreadPoolExecutor) -> None:
        self._folder, self._interpreter, self._pool = folder, interpreter, pool
        self._references: dict[tuple[str, str], Future[None]] = {}
        self.certificates: dict[str, Future[Certificate]] = {}

    def submit(self, mutant: Mutant, number: int) -> None:
        folder = self._folder / str(number)
        found = subjects.subject(mutant.framework, mutant.workload, mutant.preset, folder, mutant.optimizer)
        form = (mutant.group, str(sorted(found.declared.items())))
        shared = self._folder / "references" / str(len(self._references))
        if form not in self._references:
            proceedings = reference.jobs_for(found, [subjects.peer("pytorch")], shared)
            python = self._interpreter("pytorch")
            self._references[form] = self._pool.submit(run, proceedings.references[0], python)
        else:
            shared = self._folder / "references" / str(list(self._references).index(form))
        proceedings = reference.jobs_for(found, [subjects.peer("pytorch")], shared)
        python = self._interpreter(mutant.framework)
        ready = self._references[form]
        self.certificates[mutant.name + mutant.workload] = self._pool.submit(
            self._certify, proceedings, mutant, python, folder, ready
        )

    def _certify(
        self, proceedings: Proceedings, mutant: Mutant, python: Path, folder: Path, ready: Future[None]
    ) -> Certificate:
        worker = copy_worker(folder)
        mutate(worker, mutant)
        changed = subjects.moved(proceedings.subject, worker).job
        candidate = proceedings.candidate.job
        task = reference.Task("", reference.replace(candidate, workload_folder=changed.workload_folder))
        run(task, python, worker)
        ready.result()
        return reference.conclude(proceedings)


@pytest.fixture(scope="module")
def bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, interpreter: Callable[[str], Path]
) -> Iterator[Bench]:
    chosen = [item.callspec.params["mutant"] for item in request.session.items if "bench" in getattr(item, "fixturenames", ())]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = Bench(tmp_path_factory.mktemp("mutants"), interpreter, pool)
        for number, mutant in enumerate(chosen):
            found.submit(mutant, number)
        yield found


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.workload}: {m.name}")
def test_a_mistake_is_rejected_and_its_place_is_named(
    bench: Bench, mutant: Mutant, record_property: Callable[[str, object], None]
) -> None:
    found = bench.certificates[mutant.name + mutant.workload].result()
    record_property("units", found.worst_units)
    print(f"MUTANT | {mutant.workload} | {mutant.framework} | {mutant.name} | {found.sentence} | worst {found.worst_units:.3g}")
    assert not found.passed
    assert mutant.names.lower() in found.sentence.lower()


@pytest.mark.parametrize("family", ["resnet18", "lstm-imdb"])
def test_every_family_has_at_least_twelve_mutants(family: str) -> None:
    assert sum(mutant.workload == family for mutant in MUTANTS) >= 12
