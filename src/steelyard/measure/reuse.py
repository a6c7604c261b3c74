"""Use the rounds of an earlier run again, if it measured the same cells on this machine in the same way."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from steelyard.errors import UserError
from steelyard.files import json_lines, within
from steelyard.measure import jobs
from steelyard.measure.session import Session
from steelyard.plan.run_plan import Group
from steelyard.results import imported, record, run_folders, trials
from steelyard.results.facts import Reused
from steelyard.results.record import RunRecord
from steelyard.results.trials import Trial


def adopt(session: Session) -> None:
    """Copy the rounds of every group that an earlier run has measured, and note in run.json where they are from.

    Only studies with sizes use rounds again: they have many cells, and are meant to be redone in parts. The cases, the
    protocol, the files of the workload, the environments' contents, the machine and the measuring code must be the same.
    """
    plan, known = session.plan, record.read(session.folder)
    if not plan.study.sizes or plan.options.fresh or trials.has_finished(session.folder):
        return
    reused: dict[str, Reused] = {}
    groups = list(plan.groups)
    for folder, earlier in _runs_before(session.folder):
        for group in [each for each in groups if _measured_alike(each, known, earlier)]:
            if found := _rounds_of(folder, group):
                reused[group.name] = _origin(folder, earlier, group)
                # Noted before anything is copied: an interrupted run must not show these rounds as its own.
                record.update(session.folder, reused=reused)
                _copy(session, folder, group, found)
                groups.remove(group)
                session.screen.say(f"{group.name} was measured {_on(reused[group.name])}; --fresh measures it anew.")


def _runs_before(folder: Path) -> Iterator[tuple[Path, RunRecord]]:
    """Yield the other runs beside a run, the newest first; those that cannot be read are left out."""
    for name in reversed(run_folders.names(folder.parent)):
        other = folder.parent / name
        if name != folder.name:
            try:
                yield other, record.read(other)
            except UserError:
                continue


def _measured_alike(group: Group, known: RunRecord, earlier: RunRecord) -> bool:
    """Report whether an earlier run measured all cases of a group, in the same way, and with nothing in between changed."""
    same = ("machine", "method", "worker_hash")
    if (
        any(getattr(known, name) != getattr(earlier, name) for name in same)
        or not known.machine
        or earlier.shared_machine
    ):
        return False
    other = next((each for each in earlier.plan.groups if {*_ids(group)} <= {*_ids(each)}), None)
    workload = group.cases[0].workload
    needed = {name for case in group.cases for name in known.plan.environments_of(case)}
    return bool(
        other
        and (other.protocol, other.train_steps, other.evaluation_limit)
        == (group.protocol, group.train_steps, group.evaluation_limit)
        and earlier.plan.options.guard == known.plan.options.guard
        and earlier.plan.workload_hashes.get(workload) == known.plan.workload_hashes[workload]
        and earlier.plan.framework_hashes == known.plan.framework_hashes
        and all(earlier.environments.get(each) == known.environments.get(each) for each in needed)
    )


def _ids(group: Group) -> list[str]:
    return [case.id for case in group.cases]


def _rounds_of(folder: Path, group: Group) -> list[Trial]:
    """Return the finished trials of a group's cases, if each case has those of the least number of rounds.

    Left out are those that imported a file from elsewhere that is another one now.
    """
    ids = {*_ids(group)}
    found = [each for each in trials.read_all(folder)[0] if each.done and each.job.case.id in ids]
    found = [each for each in found if not imported.changed(each.imported or {})]
    least = group.protocol.rounds_min
    enough = all(len({each.job.round for each in found if each.job.case.id == case_id}) >= least for case_id in ids)
    return found if enough else []


def _copy(session: Session, folder: Path, group: Group, found: list[Trial]) -> None:
    variants = {variant.case.id: variant for variant in group.variants}
    earlier = record.read(folder).plan
    name = next(variant.group for variant in earlier.variants if variant.case.id in variants)
    for trial in found:
        job = trial.job
        target = jobs.trial_folder(session.folder, job.round, job.attempt, variants[job.case.id])
        within.check(session.folder, target)
        shutil.copytree(trial.folder, target, ignore=_links, copy_function=_link)
    for note in record.read_rounds(folder)[0]:
        if note["group"] == name:
            json_lines.append(session.folder / record.ROUNDS, **{**note, "group": group.name})


def _links(folder: str, names: list[str]) -> list[str]:
    """Return the names of links, which are no part of a record."""
    return [name for name in names if Path(folder, name).is_symlink()]


def _link(source: str, target: str) -> None:
    """Share the file's contents where the file system can; the files of a finished trial never change."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _origin(folder: Path, earlier: RunRecord, group: Group) -> Reused:
    """Return where the rounds were measured: in that run, or in the run from which it took them."""
    name = next(each.name for each in earlier.plan.groups if {*_ids(group)} <= {*_ids(each)})
    return earlier.reused.get(name) or Reused(run=folder.name, created=earlier.created)


def _on(reused: Reused) -> str:
    return f"on {reused['created'][:10]} in run {reused['run']}"
