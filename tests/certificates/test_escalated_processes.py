"""The further processes of a rejected candidate: which run, and what an interrupt leaves of them."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scripted_certification import ids, session, wrong

from steelyard.catalog import frameworks
from steelyard.certificates import certification, evidence, processes
from steelyard.certificates.evidence import Evidence
from steelyard.certificates.method import RANDOM_DRAWS
from steelyard_worker import protocol

if TYPE_CHECKING:
    import synthetic

    from steelyard.certificates.judgement import Judgement
    from steelyard_worker.protocol import Job

everywhere = wrong("dummy", **{"output/logits": 1.5})


def off(job: Job) -> synthetic.Dump:
    """Return outputs that are wrong on the batch itself, not on the small one: only that batch rejects the candidate."""
    return {} if any(part.startswith("small") for part in Path(job.folder).parts) else everywhere(job)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(processes, "PROCESSES_AT_ONCE", 1)
    usual = processes.network_of
    monkeypatch.setattr(
        certification, "network_of", lambda session, case: replace(usual(session, case), probes=("hidden",))
    )


def names(jobs: list[Job]) -> list[str]:
    return [Path(job.folder).name for job in jobs]


def test_the_inner_tensors_of_a_rejected_forward_pass_are_saved_and_named(tmp_path: Path) -> None:
    run = session(tmp_path / "run", off)
    found = certification.certify(run)[ids(run)["dummy"]]
    assert not found["passed"]
    assert names(run.started)[-2:] == ["inner", "inner"]
    assert [job.case.framework for job in run.started[-2:]] == ["fake", "dummy"]
    assert 'an implementation does not pass it to probe(): the inner tensor "hidden".' in found["sentence"]


def test_tensors_are_compared_once_however_many_decisions_use_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a large network take seconds; the results were computed again for every further process."""
    usual, compared = Evidence._compare, list[str]()

    def counting(self: Evidence, *tensors: Any) -> Judgement:
        compared.append(self.plan.candidate.installation.framework)
        return usual(self, *tensors)

    monkeypatch.setattr(Evidence, "_compare", counting)
    certification.certify(session(tmp_path / "run", off))
    # The candidate in its own precision, without and with what long sums may lose, and in float64.
    assert sorted(compared) == [*3 * ["dummy"], "fake"]


def test_what_noise_does_to_a_reference_is_measured_once_for_all_candidates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = Counter[str]()

    def count(name: str) -> None:
        usual = getattr(evidence, name)

        def counting(*arguments: Any) -> Any:
            measured[name] += 1
            return usual(*arguments)

        monkeypatch.setattr(evidence, name, counting)

    count("measure_changes")
    count("measure_scales")
    fake = wrong("fake", **{"output/logits": 1.2})
    found = certification.certify(session(tmp_path / "run", lambda job: everywhere(job) | fake(job)))
    assert [each["passed"] for each in found.values()] == [False, False]
    assert measured == {"measure_changes": 1, "measure_scales": 1}


SMALL = "small4"
DRAW = f"draw{RANDOM_DRAWS[0]}"
# Where it is interrupted -> what runs again: what was not saved, and what the candidate has to save at the same time.
AGAIN = {"sums": {"sums", "float64", SMALL}, "float64": {"float64", SMALL}, SMALL: {"float64", SMALL}}


@pytest.mark.parametrize(
    ("interrupted_at", "framework"),
    [
        ("sums", "fake"),
        ("float64", "dummy"),
        (SMALL, "dummy"),
        (DRAW, "fake"),
        (DRAW, "dummy"),
        ("inner", "fake"),
        ("inner", "dummy"),
    ],
)
def test_a_further_process_that_was_interrupted_is_not_read_as_failed(
    interrupted_at: str, framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = off
    if interrupted_at == DRAW:  # what cannot compute in float64 is compared on other draws
        errors = everywhere
        monkeypatch.setattr(frameworks.Framework, "has_float64", lambda known, *_: known.name != "dummy")
    expected = session(tmp_path / "expected", errors)
    sentence = certification.certify(expected)[ids(expected)["dummy"]]["sentence"]
    shutil.rmtree(tmp_path / "cache")

    def interrupted(job: Job) -> synthetic.Dump:
        if (Path(job.folder).name, job.case.framework) == (interrupted_at, framework):
            Path(job.folder).mkdir(parents=True)
            (Path(job.folder) / protocol.EVENTS).write_text("")
            raise KeyboardInterrupt
        return errors(job)

    run = session(tmp_path / "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        certification.certify(run)
    continued = session(tmp_path / "run", errors)
    found: dict[str, Any] = certification.certify(continued)[ids(run)["dummy"]]
    assert found["sentence"] == sentence
    assert interrupted_at in names(continued.started)
    again = set(names(continued.started))
    assert again & {"sums", "float64", SMALL} == AGAIN.get(interrupted_at, set())
