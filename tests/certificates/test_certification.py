"""The certificates of a run: which processes are started for them, what is reused, and what the user reads."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scripted_certification import Scripted, environment, ids, session, wrong

from steelyard import stages
from steelyard.catalog import frameworks
from steelyard.certificates import certification, record
from steelyard.certificates.sources import digest
from steelyard.environments import Environment, Failure
from steelyard.environments.pending import start
from steelyard.inputs.case_inputs import recipe
from steelyard.results.durations import CERTIFICATES, ENVIRONMENTS
from steelyard_worker import protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    import synthetic

    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.protocol import Job


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))


def test_every_case_is_certified_against_two_references(tmp_path: Path) -> None:
    run = session(tmp_path / "run")
    found = certification.certify(run)
    assert list(found) == [variant.case.id for variant in run.plan.variants]
    for variant in run.plan.variants:
        certificate = found[variant.case.id]
        assert certificate["passed"]
        assert certificate["framework"] == variant.case.framework
        assert list(certificate["references"]) == ["Fake 1.0", "Dummy 1.0"]
        assert certificate["inputs"] == "identity"
    text = (run.folder / "certificates.json").read_text()
    assert json.loads(text) == json.loads(json.dumps(found))
    assert len(text.splitlines()) > 20
    assert run.shown.stages == ["Certificates"]
    assert run.shown.messages == []


def with_one_reference(run: Scripted) -> Scripted:
    """Return a session in which Fake alone is a reference."""
    return replace(
        run, plan=replace(run.plan, groups=tuple(replace(group, float64=("fake",)) for group in run.plan.groups))
    )


def test_certification_begins_with_the_environments_that_are_ready(tmp_path: Path) -> None:
    run, late, begun = with_one_reference(session(tmp_path / "run")), Event(), list[str]()

    def slow() -> Environment:
        assert late.wait(30)
        return environment("dummy")

    def launched(job: Job) -> synthetic.Dump:
        begun.append(job.case.framework)
        if len(begun) == 2:
            late.set()
        return {}

    arriving = start({"fake": lambda: environment("fake"), "dummy": slow})
    found = certification.certify(replace(run, environments=arriving, errors=launched))
    assert [found[variant.case.id]["passed"] for variant in run.plan.variants] == [True, True]
    assert begun == ["fake", "fake", "dummy"], "the reference of the first part serves the second"


def test_waiting_for_an_environment_is_no_time_of_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second environment is ready a second after all else is done; the clock goes on only here."""
    run, done, ticks = with_one_reference(session(tmp_path / "run")), Event(), list[float]()
    for module in ("steelyard.environments.pending", "steelyard.results.durations"):
        monkeypatch.setattr(f"{module}.time", SimpleNamespace(monotonic=lambda: sum(ticks)))

    def slow() -> Environment:
        assert done.wait(30)
        until(lambda: arriving.waits._since_s is not None)
        ticks.append(1.0)
        return environment("dummy")

    def launched(job: Job) -> synthetic.Dump:
        ticks.append(0.25)
        done.set()
        return {}

    arriving = start({"fake": lambda: environment("fake"), "dummy": slow})
    monkeypatch.setattr(stages.record, "update", lambda *_, **__: None)
    stages._certified(replace(run, environments=arriving, errors=launched))
    seconds = run.durations.seconds
    assert ticks.count(0.25) == 3, "processes of two parts, one after the other"
    assert seconds[CERTIFICATES] == 3 * 0.25
    assert seconds[ENVIRONMENTS] == arriving.waits.seconds == 1.0


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so, in many short steps: other work on this machine may come first."""
    for _ in range(100_000):
        if condition():
            return
        time.sleep(0.001)
    raise AssertionError


def test_what_has_no_environment_gets_no_certificate(tmp_path: Path) -> None:
    run = with_one_reference(session(tmp_path / "run"))
    failure = Failure("dummy", "The disk is full.")
    arriving = start({"fake": lambda: environment("fake"), "dummy": lambda: failure})
    found = certification.certify(replace(run, environments=arriving))
    assert found.keys() == {ids(run)["fake"]}
    assert arriving.failures() == {"dummy": "The disk is full."}


def test_each_process_runs_once_and_the_references_are_shared(tmp_path: Path) -> None:
    run = session(tmp_path / "run")
    certification.certify(run)
    case = run.plan.variants[0].case
    (group,) = run.plan.groups
    reference = f"reference-line.small-{recipe(case)[:8]}-{digest(group.name)[:8]}-sgd-canonical-float64"
    names = [variant.file_name for variant in run.plan.variants]
    assert run.folders() == sorted([*names, f"{reference}/dummy", f"{reference}/fake"])
    by_folder = {Path(job.folder).name: job for job in run.started}
    for name, perturbations in (("fake", (0, 1, 2)), ("dummy", (0,))):
        job = by_folder[name]
        assert (job.kind, job.case.framework, job.certify.perturbations) == ("certify", name, perturbations)
        assert (job.case.settings.precision, job.case.settings.mode) == ("float64", "scripted")
    for variant in run.plan.variants:
        job = by_folder[variant.file_name]
        assert (job.case, job.certify.perturbations, job.weights) == (variant.case, (0,), "/weights")
    assert run.shown.progressed[0] == ("line:small: processes", 0, 4)
    assert sorted(run.shown.progressed) == [("line:small: processes", done, 4) for done in range(5)]


def test_cases_that_differ_only_in_their_loader_are_computed_once(tmp_path: Path) -> None:
    run = session(tmp_path / "run")
    (group,) = run.plan.groups
    others = [
        replace(each, case=replace(each.case, loader_workers=2), name=f"{each.name},workers=2")
        for each in group.variants
    ]
    both = replace(run, plan=replace(run.plan, groups=(replace(group, variants=(*group.variants, *others)),)))
    found = certification.certify(both)
    assert len(found) == 4
    assert [found[each.case.id] for each in group.variants] == [found[each.case.id] for each in others]
    assert all(each["passed"] for each in found.values())
    assert len(run.started) == 4
    assert len({job.folder for job in run.started}) == 4


def test_the_saved_tensors_are_deleted_and_the_logs_are_kept(tmp_path: Path) -> None:
    run = session(tmp_path / "run", wrong("dummy", **{"grad/head.bias": 1.5}))
    certification.certify(run)
    assert not list(run.folder.rglob("perturbation*"))
    assert len(list(run.folder.rglob(protocol.EVENTS))) == len(run.started) == 8


def test_certificates_are_reused_until_they_are_to_be_made_again(tmp_path: Path) -> None:
    run = session(tmp_path / "run")
    first = certification.certify(run)
    session_folders = run.folders()
    again = session(tmp_path / "again")
    assert certification.certify(again) == first
    assert again.started == []
    assert again.shown.progressed == []
    fresh = session(tmp_path / "fresh")
    assert certification.certify(fresh, fresh=True).keys() == first.keys()
    assert fresh.folders() == session_folders, "the references, too"


def test_only_the_missing_certificates_are_made(tmp_path: Path) -> None:
    first = session(tmp_path / "run")
    lost = certification.certify(first)[ids(first)["dummy"]]
    (record.folder() / f"{lost['key']}.json").unlink()
    again = session(tmp_path / "again")
    assert all(each["passed"] for each in certification.certify(again).values())
    assert [job.case.framework for job in again.started] == ["dummy"]


def test_a_run_without_certificates_starts_nothing(tmp_path: Path) -> None:
    run = session(tmp_path / "run", certify=False)
    assert certification.certify(run) == {}
    assert (run.started, run.shown.stages) == ([], [])
    assert not (run.folder / "certificates.json").exists()


def test_a_case_that_differs_is_named_and_examined_in_float64(tmp_path: Path) -> None:
    run = session(tmp_path / "run", wrong("dummy", **{"grad/head.bias": 1.5}))
    found = certification.certify(run)
    good, bad = (found[ids(run)[name]] for name in ("fake", "dummy"))
    assert good["passed"]
    assert not bad["passed"]
    assert bad["first"] == 'the gradient of "head.bias"'
    (said,) = run.shown.messages
    assert said == f"Not certified: line:small/dummy/scripted. {bad['sentence']}"
    case = run.plan.variants[0].case
    (group,) = run.plan.groups
    reference = f"reference-line.small-{recipe(case)[:8]}-{digest(group.name)[:8]}-sgd-canonical-float64"
    own = next(variant.file_name for variant in run.plan.variants if variant.case.framework == "dummy")
    assert {f"{own}/float64", f"{reference}/fake/sums"} <= set(run.folders())


def test_a_case_whose_process_failed_is_not_certified_with_its_message(tmp_path: Path) -> None:
    def failing(job: Job) -> Any:
        return (
            ("out-of-memory", "No room.")
            if job.case.framework == "dummy" and job.case.settings.precision == "float32"
            else {}
        )

    run = session(tmp_path / "run", failing)
    found = certification.certify(run)
    assert found[ids(run)["fake"]]["passed"]
    assert (found[ids(run)["dummy"]]["passed"], found[ids(run)["dummy"]]["sentence"]) == (False, "No room.")
    assert run.shown.messages == ["Not certified: line:small/dummy/scripted. No room."]


def test_without_the_tensors_of_a_reference_nothing_is_certified(tmp_path: Path) -> None:
    run = session(
        tmp_path / "run", lambda job: ("crash", "It broke.") if job.case.settings.precision == "float64" else {}
    )
    for certificate in certification.certify(run).values():
        assert certificate.keys() == {"passed", "sentence"}
        assert not certificate["passed"]
        assert certificate["sentence"].startswith("Nothing can be certified, because the process for ")
        assert certificate["sentence"].endswith(" saved no tensors: It broke.")


def test_what_is_wrong_on_purpose_gets_its_name_instead_of_a_certificate_and_starts_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def otherwise(known: frameworks.Framework, settings: Settings, rule: Optimizer) -> tuple[str, str]:
        return ("wrong on purpose", "the loss is a sum") if settings.knobs.get("step_us") == 2 else ("", "")

    monkeypatch.setattr(frameworks.Framework, "otherwise", otherwise)
    run = session(tmp_path / "run", knobs=("fake.step_us=1,2",))
    found = certification.certify(run)
    by_knob = {each.case.settings.knobs.get("step_us"): found[each.case.id] for each in run.plan.variants}
    assert by_knob[1]["passed"]
    sentence = "Wrong on purpose: the loss is a sum."
    assert by_knob[2] == {"passed": False, "sentence": sentence, "on_purpose": "wrong on purpose"}
    assert not [job for job in run.started if job.kind == "certify" and job.case.settings.knobs.get("step_us") == 2]


def test_a_case_that_a_knob_sets_apart_has_the_certificate_of_the_default_without_its_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With dropout, the losses of a trial are not those of the certificate, so none are kept to compare them with."""

    def apart(known: frameworks.Framework, settings: Settings, rule: Optimizer) -> dict[str, str]:
        return {"step_us": "its masks are its own"} if settings.knobs.get("step_us") == 2 else {}

    monkeypatch.setattr(frameworks.Framework, "apart", apart)
    run = session(tmp_path / "run", knobs=("fake.step_us=1,2",))
    default = frameworks.framework("fake").knobs["step_us"].default
    plain, own = run.plan.groups
    found = certification.certify(run)
    computed = {job.case.settings.knobs["step_us"] for job in run.started if job.case.framework == "fake"}
    assert computed == {1, default}
    certificate, without = found[plain.cases[0].id], found[own.cases[0].id]
    assert certificate["passed"]
    assert without["passed"], without
    assert len(certificate["losses"]) > 0
    assert (without["losses"], without["loss_limits"]) == ([], [])
    assert (without["updates"], without["update_limits"]) == ({}, {})
    assert without["sentence"].startswith("Its masks are its own. ")
    assert not certificate["sentence"].startswith("Its masks")


def test_groups_that_certify_the_same_case_compute_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def apart(known: frameworks.Framework, settings: Settings, rule: Optimizer) -> dict[str, str]:
        return {"step_us": "its masks are its own"} if settings.knobs.get("step_us") == 2 else {}

    monkeypatch.setattr(frameworks.Framework, "apart", apart)
    default = frameworks.framework("fake").knobs["step_us"].default
    run = session(tmp_path / "run", knobs=(f"fake.step_us={default},2",))
    plain, own = run.plan.groups
    assert certification.together(run.plan.groups) == [[plain, own]]
    found = certification.certify(run)
    alone = session(tmp_path / "alone", knobs=(f"fake.step_us={default}",))
    shutil.rmtree(tmp_path / "cache")
    certification.certify(alone)
    assert len(run.started) == len(alone.started) > 0
    assert found[plain.cases[0].id]["key"] == found[own.cases[0].id]["key"]
    certification.certify(run, fresh=True)
    assert len(run.started) == 2 * len(alone.started)


def test_groups_of_different_cases_are_certified_side_by_side(tmp_path: Path) -> None:
    run = session(tmp_path / "run", batches=(2, 4))
    assert len(run.plan.groups) == 2
    assert certification.together(run.plan.groups) == [[group] for group in run.plan.groups]
