"""Certificates for every cell of a run, before anything is timed: kept ones are reused, the others are made side by side."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from threading import Lock, Semaphore
from typing import TYPE_CHECKING, Any

from steelyard.catalog import frameworks
from steelyard.certificates import record as kept
from steelyard.certificates.method import Scope
from steelyard.certificates.proceedings import Peer, Subject, jobs_for
from steelyard.certificates.reference import conclude, further_tasks, has_reference
from steelyard.environments import Environment, setup
from steelyard.errors import UserError
from steelyard.host import usable_cores
from steelyard.measure import jobs
from steelyard.plan import cells
from steelyard.results import record

if TYPE_CHECKING:
    from steelyard.certificates.proceedings import Proceedings, Task
    from steelyard.certificates.record import Certificate
    from steelyard.measure.session import Session
    from steelyard.plan.cells import Cell

REFERENCES = 2
PROCESSES_AT_ONCE = 4
# While the last processes of one group run, those of the next fill the other cores; more groups would fill the disk with dumps.
GROUPS_AT_ONCE = 2


def certify(session: Session, fresh: bool = False, scope: Scope | None = None) -> dict[str, dict[str, Any]]:
    """Certify every cell; returns {cell key: certificate}, which is also written into the run's folder."""
    if not session.plan.options.certify:
        return {}
    session.screen.stage("Certificates")
    scope = scope or Scope()
    # At full size one process may need the whole memory.
    gate = Semaphore(1 if scope.sample else min(PROCESSES_AT_ONCE, usable_cores()))
    peers = {group: _peers(session, group) for group in session.plan.groups}
    certificates: dict[str, dict[str, Any]] = {}
    lock = Lock()

    def work(group: str) -> None:
        found = _certify_group(session, group, peers[group], fresh, scope, gate)
        with lock:
            certificates.update(found)
            (session.folder / record.CERTIFICATES).write_text(json.dumps(certificates, indent=1), encoding="utf-8")
            for key, certificate in found.items():
                if not certificate["passed"]:
                    session.screen.say(f"Not certified: {key}. {certificate['sentence']}")

    session.side_by_side(work, session.plan.groups, 1 if scope.sample else GROUPS_AT_ONCE)
    return {cell.key: certificates[cell.key] for cell in session.plan.cells}


def _certify_group(
    session: Session, group: str, peers: list[Peer], fresh: bool, scope: Scope, gate: Semaphore
) -> dict[str, dict[str, Any]]:
    """Certify the cells of one group, of which nothing is concluded once the run is given up; its dumps go with its end."""
    members = session.plan.groups[group]
    if alone := _alone(session, group):
        return {cell.key: {"passed": False, "sentence": alone} for cell in members}
    proceedings = {cell.key: _proceed(session, cell, peers, scope) for cell in members if peers}
    found: dict[str, Certificate | str] = {}
    if not fresh:
        found = {key: known for key, each in proceedings.items() if (known := kept.find(each.key))}
    open_ = {key: each for key, each in proceedings.items() if key not in found}
    _run(session, group, [task for each in open_.values() for task in _tasks(each)], gate)
    while not session.stop.is_set() and (further := [task for each in open_.values() for task in _further(each)]):
        _run(session, group, further, gate)
    if session.stop.is_set():
        return {}
    found |= {key: _conclude(each) for key, each in open_.items()}
    _clear(open_)
    return {cell.key: _as_dict(found.get(cell.key)) for cell in members}


def _alone(session: Session, group: str) -> str:
    """Say that there is nothing to certify against where one framework alone implements a workload; else nothing."""
    workload, _ = session.plan.preset(group)
    able = [known for name, known in frameworks.all_frameworks().items() if workload.implemented_by(name)]
    if len(able) > 1:
        return ""
    return f"Only {able[0].title} implements {workload.name}, so there is nothing to certify against."


def _proceed(session: Session, cell: Cell, peers: list[Peer], scope: Scope) -> Proceedings:
    workload, preset = session.plan.preset(cell.group)
    known = frameworks.framework(cell.framework)
    folder = session.folder / "certificates"
    inputs = session.inputs[cell.group]
    declared = cells.declared_form(known, cell.optimizer)
    subject = Subject(
        job=jobs.certifying(session.plan, cell, inputs, folder / cell.slug),
        network=workload.network(preset),
        peer=_peer(session, cell.environment, cell.settings.mode),
        inputs=inputs.identity,
        declared=declared,
        exact="float64" in known.precisions and not workload.obstacle(known.name, "float64"),
        scope=scope,
    )
    form = "-".join([cell.optimizer.name, *map(str, declared.values())])
    reference = folder / f"reference-{cell.workload}.{cell.preset}-{form}"
    return jobs_for(subject, peers, reference)


def _peers(session: Session, group: str) -> list[Peer]:
    """Return the frameworks whose float64 is the reference: of this run where it has any, else made for the purpose."""
    workload, _ = session.plan.preset(group)
    scripted = frameworks.framework(session.plan.groups[group][0].framework).scripted
    able = [
        name
        for name, known in frameworks.all_frameworks().items()
        if known.reference
        and known.scripted == scripted
        and workload.implemented_by(name)
        and not workload.obstacle(name, "float64")
    ]
    # The first runs thrice; those that compile for long come last.
    able.sort(key=lambda name: (name not in session.environments, frameworks.framework(name).reference))
    chosen: list[Peer] = []
    for name in able:
        if len(chosen) < REFERENCES and _has_environment(session, name):
            chosen.append(_peer(session, name, frameworks.framework(name).default_mode))
    return chosen


def _has_environment(session: Session, name: str) -> bool:
    """Make the environment of a reference that takes no part in the run itself; it always computes on the CPU."""
    if name not in session.environments:
        made = setup.make([name], "cpu", {}, session.screen)[name]
        if isinstance(made, Environment):
            session.environments[name] = made
    return name in session.environments


def _peer(session: Session, environment: str, mode: str) -> Peer:
    found = session.environments[environment]
    return Peer(found.framework, environment, mode, found.version, found.packages)


def _tasks(proceedings: Proceedings) -> list[Task]:
    references = [] if has_reference(proceedings) else list(proceedings.references)
    return [*references, proceedings.candidate]


def _further(proceedings: Proceedings) -> tuple[Task, ...]:
    """Return what must run besides where rounding alone cannot; a reference that broke down is told when concluding."""
    try:
        return further_tasks(proceedings)
    except UserError:
        return ()


def _run(session: Session, group: str, wanted: list[Task], gate: Semaphore) -> None:
    """Run every process that is needed once, as many at a time as the gate lets through: nothing is timed here."""
    tasks = {task.job.folder: task for task in wanted}
    done = 0

    def run(task: Task) -> None:
        nonlocal done
        with gate:
            if session.stop.is_set():
                return
            shutil.rmtree(task.job.folder, ignore_errors=True)
            session.run_aside(task.environment, task.job)
        done += 1
        session.screen.progress(f"{group}: processes", done, len(tasks))

    if not tasks:
        return
    session.screen.progress(f"{group}: processes", 0, len(tasks))
    session.side_by_side(run, tasks.values(), PROCESSES_AT_ONCE)


def _conclude(proceedings: Proceedings) -> Certificate | str:
    """Return the certificate, or why there is none."""
    try:
        return conclude(proceedings)
    except UserError as error:
        return str(error)


def _clear(open_: dict[str, Proceedings]) -> None:
    """Dumps are large; what they proved is in the certificates, and the references' summary is in the cache."""
    for each in open_.values():
        for task in (*each.references, each.candidate, *each.further):
            for dump in Path(task.job.folder).glob("variant*"):
                shutil.rmtree(dump, ignore_errors=True)


def _as_dict(found: Certificate | str | None) -> dict[str, Any]:
    if found is None:
        return {"passed": False, "sentence": "No framework with a trustworthy float64 is there to certify against."}
    return {"passed": False, "sentence": found} if isinstance(found, str) else asdict(found)
