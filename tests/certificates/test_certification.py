"""The certificates of a run: which processes are started for them, what is reused, and what the user reads.

The processes are scripted: each writes random tensors that agree, except where a test adds an error.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
import synthetic
from measure.scripted_session import Screen

from steelyard import run as stages
from steelyard.catalog import frameworks, workloads
from steelyard.certificates import certification, record
from steelyard.certificates.method import FULL_BATCH, FULL_SAMPLE, FULL_SIZE
from steelyard.certificates.sources import digest
from steelyard.environments import Environment, Failure
from steelyard.environments.arriving import Arriving, already, start
from steelyard.inputs.case_inputs import CaseInputs, recipe
from steelyard.measure.session import Session
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results.durations import CERTIFICATES, ENVIRONMENTS
from steelyard.results.trials import Trial
from steelyard_worker import protocol, tensors
from steelyard_worker.protocol import Data

if TYPE_CHECKING:
    from steelyard_worker.case import Optimizer, Settings
    from steelyard_worker.protocol import Job

WORKLOADS = Path(__file__).parents[1] / "workloads"

# Job -> tensors that replace those of the reference; an error as (kind, message): the process saves none.
Errors = "Callable[[Job], synthetic.Dump | tuple[str, str]]"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))


@dataclass
class Shown(Screen):
    """Stores the progress and the stages too."""

    progressed: list[tuple[str, float, float]] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)

    def stage(self, title: str) -> None:
        self.stages.append(title)

    def progress(self, label: str, done: float, total: float, note: str = "") -> None:
        self.progressed.append((label, done, total))


@dataclass(frozen=True)
class Scripted(Session):
    """A session whose processes write synthetic tensors; `started` has their jobs, `at_once` the most at any time."""

    errors: Any = field(kw_only=True)
    started: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)
    at_once: list[int] = field(default_factory=list)
    slow_s: list[float] = field(default_factory=list)

    def run_aside(self, job: Job) -> Trial:
        self.started.append(job)
        self.running.append(job)
        self.at_once.append(len(self.running))
        time.sleep(sum(self.slow_s))
        found = self.errors(job)
        if isinstance(found, tuple):
            write_error(Path(job.folder), *found)
        else:
            write_dumps(job, found)
        self.running.remove(job)
        return Trial(Path(job.folder), job)

    @property
    def shown(self) -> Shown:
        return cast("Shown", self.screen)

    def folders(self) -> list[str]:
        """Return the folders of the processes, relative to the run's, sorted."""
        return sorted(str(Path(job.folder).relative_to(self.folder / "certificates")) for job in self.started)


def write_dumps(job: Job, changed: synthetic.Dump) -> None:
    network = workloads.described(Path(job.workload_folder), job.case.sizes)
    runs = synthetic.dumps(network=network)
    for number in job.certify.perturbations:
        run = runs[number] if number in (1, 2) else runs[0] | changed
        tensors.write(Path(job.folder) / f"perturbation{number}", run)
    (Path(job.folder) / protocol.EVENTS).write_text("")


def write_error(folder: Path, kind: str, message: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    event = {"v": protocol.VERSION, "event": "error", "t_ns": 0, "kind": kind, "message": message}
    (folder / protocol.EVENTS).write_text(json.dumps(event) + "\n", encoding="utf-8")


def environment(name: str) -> Environment:
    return Environment(name, name, "1.0", Path(sys.executable), "3.11.7", {"numpy": "1"})


def session(
    folder: Path, errors: Any = lambda _: {}, chosen: tuple[str, ...] = ("fake", "dummy"), **options: Any
) -> Scripted:
    """Return a session of the smallest workload with the environments of the chosen frameworks."""
    wanted = Options(workloads=("line",), frameworks=chosen, workload_folders=(str(WORKLOADS),))
    plan = resolve.plan(replace(wanted, **options))
    folder.mkdir(parents=True, exist_ok=True)
    inputs = CaseInputs(Path("/weights"), Data("/synthetic"), "", {}, "identity")
    shared = {recipe(variant.case): inputs for variant in plan.variants}
    made = already({name: environment(name) for name in chosen})
    return Scripted(plan, folder, made, shared, cast("Any", None), cast("Any", Shown()), errors=errors)


def ids(run: Scripted) -> dict[str, str]:
    """Return {framework: case id}."""
    return {variant.case.framework: variant.case.id for variant in run.plan.variants}


def wrong(framework: str, **tensors_of: float) -> Any:
    """Return the errors of one framework: tensors that are off by a factor."""

    def errors(job: Job) -> synthetic.Dump:
        if job.case.framework != framework or job.case.settings.precision == "float64":
            return {}
        network = workloads.described(Path(job.workload_folder), job.case.sizes)
        reference = synthetic.dumps(network=network)[0]
        return {key: np.asarray(reference[key] * factor) for key, factor in tensors_of.items()}

    return errors


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
    assert len(run.started) <= certification.PROCESSES_AT_ONCE


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
    assert len(run.started) <= certification.PROCESSES_AT_ONCE


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
