"""The processes of certificates: how many run at once, what an interrupt leaves, and what they need of the disk."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scripted_certification import WORKLOADS, Scripted, session

from steelyard.catalog import frameworks
from steelyard.certificates import capacity, certification, processes
from steelyard.certificates.method import FULL_BATCH, FULL_SAMPLE, FULL_SIZE
from steelyard.errors import ResumableError
from steelyard.measure.processes import OUT_OF_MEMORY
from steelyard.measure.session import SPARE_BYTES
from steelyard_worker import tensors

if TYPE_CHECKING:
    import synthetic

    from steelyard_worker.protocol import Job


SOON_S, LATE_S = 0.05, 10.0


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))


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


KILLED = ("killed", f"The worker was killed (signal 9). {OUT_OF_MEMORY}")


@pytest.mark.parametrize(
    ("error", "cores", "again"),
    [(KILLED, 2, True), (KILLED, 1, False), (("killed", "The worker was ended by SIGSEGV."), 2, False)],
)
def test_a_process_that_ran_out_of_memory_beside_another_runs_again_alone(
    error: tuple[str, str], cores: int, again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certification, "usable_cores", lambda: cores)
    beside = list[int]()  # how many processes ran at each attempt of the candidate that fails

    def failing(job: Job) -> synthetic.Dump | tuple[str, str]:
        if "reference" in job.folder:
            return {}
        fails = Path(job.folder).name == candidate
        limit = time.monotonic() + LATE_S
        # At its first attempt it waits for another one to be beside it, and that one until the first has failed.
        while cores > 1 and not beside and (not fails or len(run.running) < 2) and time.monotonic() < limit:
            time.sleep(0.001)
        time.sleep(SOON_S)
        if fails:
            beside.append(len(run.running))
        return error if fails and len(beside) == 1 else {}

    run = session(tmp_path / "run", failing, knobs=("fake.step_us=1,2,3,4,5,6,7,8",))
    first = next(each for each in run.plan.variants if each.case.framework == "fake")
    candidate = first.file_name
    found = certification.certify(run)[first.case.id]
    assert beside == ([cores, 1] if again else [cores])
    assert found["passed"] == again
    assert any("runs again alone" in each for each in run.shown.messages) == again
    assert again or error[1] in found["sentence"]


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


def leave(space: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the disk have this many bytes for certificates."""
    monkeypatch.setattr(capacity.shutil, "disk_usage", lambda _: SimpleNamespace(free=SPARE_BYTES + space))


def two_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the two frameworks have two forms of an update rule, which need two references."""
    forms = {"fake": "canonical", "dummy": "epsilon-hat"}
    monkeypatch.setattr(frameworks, "declared_form", lambda known, _: {"form": forms[known.name]})


def watched(run: Scripted) -> list[tuple[str, set[str]]]:
    """Certify everything anew; returns the name of each process, and whose tensors were on the disk when it started."""
    seen: list[tuple[str, set[str]]] = []

    def look(job: Job) -> synthetic.Dump:
        saved = {path.parent.name for path in run.folder.glob("certificates/**/perturbation0")}
        seen.append((Path(job.folder).name, saved))
        return {}

    found = certification.certify(replace(run, errors=look), fresh=True)
    assert all(found[each.case.id]["passed"] for each in run.plan.variants)
    return seen


def test_with_little_disk_what_needs_another_reference_is_certified_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk has room for one reference and its candidate."""
    monkeypatch.setattr(processes, "PROCESSES_AT_ONCE", 1)
    two_forms(monkeypatch)
    run = session(tmp_path / "run")
    variant = run.plan.variants[0]
    scalars = sum(each.count for each in processes.network_of(run, variant.case).parameters)
    one = 7 * scalars * (3 * 8 + 4)  # two references and their summary, and a candidate

    first, second = (each.file_name for each in run.plan.variants)
    leave(2 * one, monkeypatch)
    assert (second, {first}) in watched(run)
    leave(one, monkeypatch)
    apart = watched(run)
    assert [name for name, _ in apart] == ["fake", "dummy", first, "fake", "dummy", second]
    assert [kept for name, kept in apart if name in {"fake", second}] == [set(), set(), set()]
    leave(one - 1, monkeypatch)
    with pytest.raises(ResumableError, match="The certificates of line:small save up to"):
        certification.certify(run, fresh=True)


def test_with_little_disk_candidates_of_one_reference_are_certified_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve ways to compute VGG-16, for example, save 70 GB."""
    monkeypatch.setattr(processes, "PROCESSES_AT_ONCE", 1)
    run = session(tmp_path / "run")
    scalars = sum(each.count for each in processes.network_of(run, run.plan.variants[0].case).parameters)
    references, candidate = 7 * scalars * 3 * 8, 7 * scalars * 4
    first, second = (each.file_name for each in run.plan.variants)
    leave(references + 2 * candidate, monkeypatch)
    assert watched(run)[-1] == (second, {first})
    leave(references + 2 * candidate - 1, monkeypatch)
    apart = watched(run)
    assert [name for name, _ in apart] == ["fake", "dummy", first, second]
    assert apart[-1] == (second, set())


def test_what_a_part_leaves_on_the_disk_makes_the_next_part_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary of a reference stays: BERT with Adam, whose reference is 5.4 GB for each of two forms of the update rule."""
    monkeypatch.setattr(processes, "PROCESSES_AT_ONCE", 1)
    two_forms(monkeypatch)
    run = session(tmp_path / "run", knobs=("dummy.step_us=10,20",))
    sets = 7 * sum(each.count for each in processes.network_of(run, run.plan.variants[0].case).parameters)
    summary, references, candidate = sets * 8, sets * 3 * 8, sets * 4
    first, second, third = (each.file_name for each in run.plan.variants)

    def usage(_: Path) -> SimpleNamespace:
        summaries = len(list(tmp_path.glob("cache/certificates/references/*/index.json")))
        return SimpleNamespace(free=SPARE_BYTES + references + candidate + (1 - summaries) * summary)

    monkeypatch.setattr(capacity.shutil, "disk_usage", usage)
    ran = watched(run)
    assert [name for name, _ in ran] == ["fake", "dummy", first, "fake", "dummy", second, third]
    assert ran[-1] == (third, set())
