"""Which frameworks are the references of a certificate: none, one, two, or a third that decides between two."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scripted_certification import WORKLOADS, Scripted, environment, session

from steelyard.catalog import frameworks
from steelyard.certificates import certification
from steelyard.environments import Failure
from steelyard.environments.pending import Arriving, already, start

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard_worker.protocol import Job


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))


def test_a_workload_that_one_framework_implements_cannot_be_certified(tmp_path: Path) -> None:
    own = tmp_path / "workloads" / "line"
    shutil.copytree(WORKLOADS / "line", own)
    for path in own.glob("*.py"):
        if path.name not in ("network.py", "fake.py"):
            path.unlink()
    run = session(tmp_path / "run", chosen=("fake",), workload_folders=(str(own.parent),))
    (certificate,) = certification.certify(run).values()
    sentence = "Only Fake implements line, so there is nothing to certify against."
    assert certificate == {"passed": False, "sentence": sentence}
    assert run.shown.messages == [f"Not certified: line:small/fake/scripted. {sentence}"]
    assert run.started == []


def test_without_a_framework_that_computes_in_float64_nothing_can_be_certified(tmp_path: Path) -> None:
    run = session(tmp_path / "run")
    groups = tuple(replace(group, float64=()) for group in run.plan.groups)
    run = replace(run, plan=replace(run.plan, groups=groups))
    for certificate in certification.certify(run).values():
        assert certificate == {
            "passed": False,
            "sentence": "No framework with reliable float64 results is available to compare with.",
        }
    assert run.started == []


def test_a_reference_that_is_not_part_of_the_run_gets_an_environment_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []

    def make(*arguments: Any) -> Arriving:
        asked.append(arguments[:3])
        return already({str(name): environment(str(name)) for name in arguments[0]})

    monkeypatch.setattr(certification.setup, "make", make)
    run = session(tmp_path / "run", chosen=("dummy",))
    (certificate,) = certification.certify(run).values()
    assert asked == [([("fake", "")], "cpu", {})]
    assert list(certificate["references"]) == ["Dummy 1.0", "Fake 1.0"], "those of the run come first"
    assert certificate["agreement"] == 0


def test_one_reference_is_enough_where_no_other_environment_can_be_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        certification.setup,
        "make",
        lambda names, *_: start({str(names[0]): lambda: Failure(str(names[0]), "No network.")}),
    )
    run = session(tmp_path / "run", chosen=("fake",))
    (certificate,) = certification.certify(run).values()
    assert certificate["passed"]
    assert list(certificate["references"]) == ["Fake 1.0"]
    assert certificate["agreement"] is None


def test_at_most_two_frameworks_are_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = frameworks.all_frameworks()
    third = replace(known["fake"], name="third", reference=3)
    monkeypatch.setattr(frameworks, "all_frameworks", lambda: {"third": third, **known})
    monkeypatch.setattr(certification.setup, "make", lambda *_: pytest.fail("a third reference was prepared"))
    run = session(tmp_path / "run")
    groups = tuple(replace(group, float64=("third", *group.float64)) for group in run.plan.groups)
    run = replace(run, plan=replace(run.plan, groups=groups))
    assert all(len(each["references"]) == 2 for each in certification.certify(run).values())


def disputed(folder: Path, monkeypatch: pytest.MonkeyPatch, third_fails: bool = False) -> Scripted:
    """Return a session in which Fake is wrong in float64 and a third framework could be a reference."""
    known = frameworks.all_frameworks()
    third = replace(known["fake"], name="third", title="Third", reference=3)
    monkeypatch.setattr(frameworks, "all_frameworks", lambda: {"third": third, **known})
    monkeypatch.setattr(certification.setup, "make", lambda *_: already({"third": environment("third")}))

    def errors(job: Job) -> Any:
        if third_fails and job.case.framework == "third":
            return "crash", "It broke."
        of_fake = job.case.framework == "fake" and job.case.settings.precision == "float64"
        return {"loss": np.float64(0.8)} if of_fake else {}

    run = session(folder, errors)
    groups = tuple(replace(group, float64=("third", *group.float64)) for group in run.plan.groups)
    return replace(run, plan=replace(run.plan, groups=groups))


def test_a_third_framework_decides_between_two_references_that_disagree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = disputed(tmp_path / "run", monkeypatch)
    found = certification.certify(run)
    for certificate in found.values():
        assert certificate["passed"]
        assert list(certificate["references"]) == ["Third 1.0", "Dummy 1.0"]
        assert "Fake 1.0 disagrees in float64 with Third 1.0 and Dummy 1.0" in certificate["sentence"]
    started = [(job.case.framework, job.certify.perturbations) for job in run.started]
    assert started.count(("third", (0, 1, 2))) == 1
    assert len(started) == 5
    again = disputed(tmp_path / "again", monkeypatch)
    assert certification.certify(again) == found
    assert again.started == []
    fresh = disputed(tmp_path / "fresh", monkeypatch)
    assert certification.certify(fresh, fresh=True).keys() == found.keys()
    assert len(fresh.started) == 5


def test_where_the_third_framework_fails_too_the_two_references_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for certificate in certification.certify(disputed(tmp_path / "run", monkeypatch, third_fails=True)).values():
        assert not certificate["passed"]
        assert "because Fake 1.0 and Dummy 1.0 disagree in float64" in certificate["sentence"]
