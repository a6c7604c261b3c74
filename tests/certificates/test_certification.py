"""The certificates of a run: which processes are started for them, what is reused, and what the user reads."""

from __future__ import annotations

import json
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scripted_certification import WORKLOADS, Scripted, environment, ids, session, wrong

from steelyard import run as stages
from steelyard.catalog import frameworks
from steelyard.certificates import certification, gate, processes, record
from steelyard.certificates.method import FULL_BATCH, FULL_SAMPLE, FULL_SIZE
from steelyard.certificates.sources import digest
from steelyard.environments import Environment, Failure
from steelyard.environments.arriving import start
from steelyard.errors import ResumableError
from steelyard.inputs.case_inputs import recipe
from steelyard.measure.session import SPARE_BYTES
from steelyard.results.durations import CERTIFICATES, ENVIRONMENTS
from steelyard_worker import protocol, tensors

if TYPE_CHECKING:
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
    """The second environment is ready a second after all else is done."""
    run, done = with_one_reference(session(tmp_path / "run")), Event()

    def slow() -> Environment:
        assert done.wait(30)
        time.sleep(1)
        return environment("dummy")

    def launched(job: Job) -> synthetic.Dump:
        time.sleep(0.3)
        done.set()
        return {}

    arriving = start({"fake": lambda: environment("fake"), "dummy": slow})
    monkeypatch.setattr(stages.record, "update", lambda *_, **__: None)
    stages._certified(replace(run, environments=arriving, errors=launched))
    seconds = run.durations.seconds
    assert 0.3 < seconds[ENVIRONMENTS] < 1.3
    assert seconds[CERTIFICATES] > 0.5, "processes of two parts, one after the other"
    assert seconds[ENVIRONMENTS] == pytest.approx(arriving.waits.seconds, abs=0.05)


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
    assert bad["first"] == "the gradient of head.bias"
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


def test_an_interrupt_ends_everything_and_leaves_no_certificate(tmp_path: Path) -> None:
    def interrupted(job: Job) -> synthetic.Dump:
        raise KeyboardInterrupt

    run = session(tmp_path / "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        certification.certify(run)
    assert run.stop.is_set()
    assert not (run.folder / "certificates.json").exists()
    assert len(run.started) <= processes.PROCESSES_AT_ONCE


def flip(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ("nothing", []),
        ("damage", ["dummy"]),
        ("rules", ["fake", "dummy"]),
        ("fresh", ["fake", "dummy"]),
    ],
)
def test_after_an_interrupt_what_was_saved_is_used_unless_it_changed(
    change: str, again: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "PROCESSES_AT_ONCE", 1)

    def interrupted(_: Job) -> synthetic.Dump:
        if len(run.started) > 2:
            raise KeyboardInterrupt
        return {}

    run = session(tmp_path / "run", interrupted)
    candidates = [each.file_name for each in run.plan.variants]
    # As if the references were interrupted: as soon as both have run, they are cached.
    monkeypatch.setattr(processes.references, "condense", lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        certification.certify(run)
    assert [Path(job.folder).name for job in run.started][:3] == ["fake", "dummy", candidates[0]]
    if change == "damage":
        (saved,) = run.folder.glob(f"certificates/reference*/dummy/perturbation0/{tensors.BYTES}")
        flip(saved)
    if change == "rules":
        monkeypatch.setattr("steelyard.certificates.plan.VERSION", 0)
    continued = session(tmp_path / "run")
    found = certification.certify(continued, fresh=change == "fresh")
    assert all(found[each.case.id]["passed"] for each in run.plan.variants)
    assert [Path(job.folder).name for job in continued.started] == [*again, *candidates]


def test_processes_run_side_by_side_and_at_full_size_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certification, "usable_cores", lambda: 3)
    knobs = {"knobs": ("fake.step_us=1,2,3",)}
    run = session(tmp_path / "run", **knobs)
    run.slow_s.append(0.02)
    certification.certify(run)
    assert len(run.started) == 6
    assert 1 < max(run.at_once) <= 3
    full = session(tmp_path / "full", **knobs)
    full.slow_s.append(0.02)
    found = certification.certify(full, scope=FULL_SIZE)
    assert max(full.at_once) == 1
    assert {(job.certify.steps, job.certify.sample) for job in full.started} == {(1, FULL_SAMPLE)}
    assert FULL_BATCH == 4
    assert {each["steps"] for each in found.values()} == {1}


def test_no_process_starts_after_the_run_was_stopped(tmp_path: Path) -> None:
    started = threading.Event()

    def stopping(job: Job) -> synthetic.Dump:
        started.set()
        run.stop.set()
        return {}

    run = session(tmp_path / "run", stopping, knobs=("fake.step_us=1,2,3,4,5,6,7,8",))
    assert certification.certify(run) == {}
    assert started.is_set()
    assert len(run.started) <= processes.PROCESSES_AT_ONCE


def test_at_full_size_one_group_is_certified_after_the_other(tmp_path: Path) -> None:
    own = tmp_path / "workloads"
    for name in ("line", "other"):
        shutil.copytree(WORKLOADS / "line", own / name)
        spec = own / name / "spec.toml"
        spec.write_text(spec.read_text().replace('name = "line"', f'name = "{name}"'))
    run = session(tmp_path / "run", workloads=("line", "other"), workload_folders=(str(own),))
    run.slow_s.append(0.02)
    certification.certify(run, scope=FULL_SIZE)
    order = [job.case.workload for job in run.started]
    assert order == sorted(order)
    assert len(order) == 8
    shown = [label for label, _, _ in run.shown.progressed]
    assert shown == ["line:small: processes"] * 5 + ["other:small: processes"] * 5


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


def test_what_references_have_saved_is_deleted_before_the_next_processes_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several forms of an update rule, a large network would fill the disk otherwise."""
    monkeypatch.setattr(processes, "PROCESSES_AT_ONCE", 1)
    seen: list[tuple[str, int]] = []

    def count(job: Job) -> dict[str, Any]:
        kept = list(tmp_path.glob("run/certificates/reference*/*/perturbation*"))
        seen.append((job.case.settings.precision, len(kept)))
        return {}

    run = session(tmp_path / "run", count)
    found = certification.certify(run)
    assert all(found[variant.case.id]["passed"] for variant in run.plan.variants)
    assert seen == [("float64", 0), ("float64", 3), ("float32", 0), ("float32", 0)]


def test_with_little_disk_what_needs_another_reference_is_certified_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two forms of an update rule, which need two references; the disk has room for one of them and its candidate."""
    monkeypatch.setattr(processes, "PROCESSES_AT_ONCE", 1)
    monkeypatch.setattr(
        frameworks, "declared_form", lambda known, _: {"form": "canonical" if known.name == "fake" else "epsilon-hat"}
    )
    run = session(tmp_path / "run")
    variant = run.plan.variants[0]
    scalars = sum(each.count for each in processes.network_of(run, variant.case).parameters)
    one = 7 * scalars * (3 * 8 + 4)  # two references and their summary, and a candidate

    def free(space: int) -> None:
        monkeypatch.setattr(gate.shutil, "disk_usage", lambda _: SimpleNamespace(free=SPARE_BYTES + space))

    def saved() -> set[str]:
        return {path.parent.name for path in run.folder.glob("certificates/**/perturbation0")}

    def seen(errors: list[tuple[str, set[str]]]) -> Any:
        return lambda job: errors.append((Path(job.folder).name, saved())) or {}

    first, second = (each.file_name for each in run.plan.variants)
    together: list[tuple[str, set[str]]] = []
    free(2 * one)
    certification.certify(replace(run, errors=seen(together)))
    assert (second, {first}) in together
    apart: list[tuple[str, set[str]]] = []
    free(one)
    found = certification.certify(replace(run, errors=seen(apart)), fresh=True)
    assert all(found[each.case.id]["passed"] for each in run.plan.variants)
    assert [name for name, _ in apart] == ["fake", "dummy", first, "fake", "dummy", second]
    assert [kept for name, kept in apart if name in {"fake", second}] == [set(), set(), set()]
    free(one - 1)
    with pytest.raises(ResumableError, match="The certificates of line:small save up to"):
        certification.certify(run, fresh=True)
