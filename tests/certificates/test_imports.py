"""Files that an implementation imports from elsewhere are part of what decides a certificate, a trial and a run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import recorded_trials
from planned import filled

from steelyard.certificates import dumps, record
from steelyard.certificates.conclusion import conclude
from steelyard.certificates.references import has_reference
from steelyard.results import imported, round_results, trials
from steelyard_worker import protocol

if TYPE_CHECKING:
    from steelyard.certificates.plan import CertificationPlan, Task


def reported(folder: Path, files: dict[str, str]) -> None:
    """Write what a process reports that imported these files."""
    folder.mkdir(parents=True, exist_ok=True)
    event: dict[str, Any] = {"v": protocol.VERSION, "event": "imported", "t_ns": 0, "files": files}
    (folder / protocol.EVENTS).write_text(json.dumps(event) + "\n", encoding="utf-8")


def importing(task: Task, path: Path) -> None:
    reported(Path(task.job.folder), {str(path): hashlib.sha256(path.read_bytes()).hexdigest()})


@pytest.fixture
def helper(tmp_path: Path) -> Path:
    path = tmp_path / "helper.py"
    path.write_text("factor = 1\n")
    return path


def test_a_certificate_is_valid_while_the_files_are_as_they_were(plan: CertificationPlan, helper: Path) -> None:
    filled(plan, {})
    importing(plan.candidate_task, helper)
    found = conclude(plan)
    assert found.passed
    assert list(found.imported) == [str(helper)]
    assert record.find(plan.key) == found
    helper.write_text("factor = 2\n")
    assert record.find(plan.key) is None
    helper.write_text("factor = 1\n")
    assert record.find(plan.key) == found
    helper.unlink()
    assert record.find(plan.key) is None


def test_references_are_made_again_when_a_file_that_they_import_changes(plan: CertificationPlan, helper: Path) -> None:
    filled(plan, {})
    importing(plan.reference_tasks[0], helper)
    assert list(conclude(plan).imported) == [str(helper)], "the certificate rests on its references"
    assert has_reference(plan)
    helper.write_text("factor = 2\n")
    assert not has_reference(plan)


def test_tensors_of_an_interrupted_command_are_not_used_with_another_file(
    plan: CertificationPlan, helper: Path
) -> None:
    filled(plan, {})
    importing(plan.candidate_task, helper)
    dumps.keep(plan.candidate_task, plan.key)
    assert dumps.kept(plan.candidate_task, plan.key)
    helper.write_text("factor = 2\n")
    assert not dumps.kept(plan.candidate_task, plan.key)


def test_a_file_that_changes_while_it_is_certified_is_named_and_nothing_is_saved(
    plan: CertificationPlan, helper: Path
) -> None:
    filled(plan, {})
    importing(plan.reference_tasks[1], helper)
    helper.write_text("factor = 2\n")
    importing(plan.candidate_task, helper)
    found = conclude(plan)
    assert not found.passed
    assert found.sentence.startswith(
        f"Nothing can be certified, because {helper}, which the implementation imports, was changed"
    )
    assert record.find(plan.key) is None


def test_an_altered_process_is_rejected_with_its_sentence(plan: CertificationPlan) -> None:
    filled(plan, {})
    folder = Path(plan.candidate_task.job.folder)
    next(folder.glob("*/index.json")).unlink()  # the worker withdraws what it has saved
    event = {
        "v": protocol.VERSION,
        "event": "error",
        "t_ns": 0,
        "kind": "altered",
        "message": "numpy.linalg.norm was replaced.",
    }
    (folder / protocol.EVENTS).write_text(json.dumps(event) + "\n", encoding="utf-8")
    found = conclude(plan)
    assert (found.passed, found.sentence) == (False, "numpy.linalg.norm was replaced.")
    assert record.find(plan.key) == found


@pytest.mark.parametrize(
    ("files", "certified", "words"),
    [
        ({"/home/u/helper.py": "a"}, {"/home/u/helper.py": "a"}, ""),
        ({}, {"/home/u/helper.py": "a"}, ""),
        ({"/home/u/helper.py": "b"}, {"/home/u/helper.py": "a"}, "with another content than those of its certificate"),
        ({"/home/u/other.py": "b"}, {}, "and not by those of its certificate"),
        ({"/home/u/other.py": "b"}, None, ""),
        (None, {}, ""),
    ],
)
def test_a_trial_that_imports_other_files_than_its_certificate_has_failed(
    tmp_path: Path, files: dict[str, str] | None, certified: dict[str, str] | None, words: str
) -> None:
    trial = trials.Trial(tmp_path, recorded_trials.job(tmp_path), done=True, imported=files)
    certificate: dict[str, Any] = {"passed": True, "losses": [], "loss_limits": []}
    certificate |= {} if certified is None else {"imported": certified}
    kept = round_results.RoundResults({trial.job.case.id: certificate}).add(trial)
    assert kept.done is not bool(words)
    if words:
        assert kept.error is not None
        assert kept.error[0] == "deviation"
        assert kept.error[1].startswith(f"{next(iter(files or {}))} was imported by this process {words}")


def test_other_ranks_are_looked_at_as_well(tmp_path: Path) -> None:
    trial = trials.Trial(tmp_path, recorded_trials.job(tmp_path), done=True, imported={})
    both = replace(trial, others=(replace(trial, imported={"/home/u/helper.py": "b"}),))
    assert not imported.deviation(trial, {"imported": {}})
    assert imported.deviation(both, {"imported": {}}).startswith("/home/u/helper.py was imported")


def test_a_damaged_event_is_an_error_of_the_record_and_no_crash(tmp_path: Path) -> None:
    for files in (["/home/u/helper.py"], {"/home/u/helper.py": 5}, "x", None):
        reported(tmp_path, files)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="line 1"):
            imported.of_process(tmp_path)
        assert imported.of_run(tmp_path.parent) == {}


@pytest.mark.parametrize("path", ["/dev/zero", "/no/such/file", "a\0b", ""])
def test_a_path_of_a_stranger_s_record_is_another_file_and_never_read_for_ever(path: str) -> None:
    assert imported.changed({path: "a" * 64}) == path or not path


def test_a_run_is_no_longer_unchanged_when_such_a_file_is_another_one(tmp_path: Path, helper: Path) -> None:
    trial = tmp_path / "run" / trials.FOLDER / "r01.0-case"
    reported(trial, {str(helper): hashlib.sha256(helper.read_bytes()).hexdigest()})
    assert not imported.changed(imported.of_run(tmp_path / "run"))
    helper.write_text("factor = 2\n")
    assert imported.changed(imported.of_run(tmp_path / "run")) == str(helper)
