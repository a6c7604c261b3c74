"""Certificates for every cell of a run, before anything is timed: kept ones are reused, the others are made side by side."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from threading import Lock, Semaphore
from typing import TYPE_CHECKING, Any

from steelyard.catalog import frameworks, workloads
from steelyard.certificates import record as kept
from steelyard.certificates.method import Scope
from steelyard.certificates.proceedings import Peer, Subject, jobs_for
from steelyard.certificates.reference import conclude, further_tasks, has_reference
from steelyard.environments import Environment, setup
from steelyard.errors import UserError
from steelyard.host import usable_cores
from steelyard.inputs.case_inputs import recipe
from steelyard.measure import jobs
from steelyard.results import record

if TYPE_CHECKING:
    from steelyard.certificates.proceedings import Proceedings, Task
    from steelyard.certificates.record import Certificate
    from steelyard.measure.session import Session
    from steelyard.plan.run_plan import Group, Variant

REFERENCES = 2
PROCESSES_AT_ONCE = 4
# While the last processes of one group run, those of the next fill the other cores; more groups would fill the disk with dumps.
GROUPS_AT_ONCE = 2


def certify(session: Session, fresh: bool = False, scope: Scope | None = None) -> dict[str, dict[str, Any]]:
    """Certify every case; returns {case id: certificate}, which is also written into the run's folder."""
    if not session.plan.options.certify:
        return {}
    session.screen.stage("Certificates")
    scope = scope or Scope()
    # At full size one process may need the whole memory.
    gate = Semaphore(1 if scope.sample else min(PROCESSES_AT_ONCE, usable_cores()))
    peers = {group.name: _peers(session, group) for group in session.plan.groups}
    certificates: dict[str, dict[str, Any]] = {}
    lock = Lock()

    def work(group: Group) -> None:
        found = _certify_group(session, group, peers[group.name], fresh, scope, gate)
        with lock:
            certificates.update(found)
            (session.folder / record.CERTIFICATES).write_text(json.dumps(certificates, indent=1), encoding="utf-8")
            for case_id, certificate in found.items():
                if not certificate["passed"]:
                    session.screen.say(f"Not certified: {session.plan.by_id[case_id].key}. {certificate['sentence']}")

    session.side_by_side(work, session.plan.groups, 1 if scope.sample else GROUPS_AT_ONCE)
    return {variant.case.id: certificates[variant.case.id] for variant in session.plan.variants}


def _certify_group(
    session: Session, group: Group, peers: list[Peer], fresh: bool, scope: Scope, gate: Semaphore
) -> dict[str, dict[str, Any]]:
    """Certify the cases of one group; an interrupted run concludes nothing. The dumps are removed at the end."""
    if alone := _alone(group):
        return {case.id: {"passed": False, "sentence": alone} for case in group.cases}
    proceedings = {each.case.id: _proceed(session, group, each, peers, scope) for each in group.variants if peers}
    found: dict[str, Certificate | str] = {}
    if not fresh:
        found = {key: known for key, each in proceedings.items() if (known := kept.find(each.key))}
    open_ = {key: each for key, each in proceedings.items() if key not in found}
    _run(session, group.name, [task for each in open_.values() for task in _tasks(each)], gate)
    while not session.stop.is_set() and (further := [task for each in open_.values() for task in _further(each)]):
        _run(session, group.name, further, gate)
    if session.stop.is_set():
        return {}
    found |= {key: _conclude(each) for key, each in open_.items()}
    _clear(open_)
    return {case.id: _as_dict(found.get(case.id)) for case in group.cases}


def _alone(group: Group) -> str:
    """Return a sentence where only one framework implements the workload, so that there is no reference; else nothing."""
    if len(group.implemented_by) > 1:
        return ""
    (only,), workload = group.implemented_by, group.cases[0].workload
    return f"Only {frameworks.framework(only).title} implements {workload}, so there is nothing to certify against."


def _proceed(session: Session, group: Group, variant: Variant, peers: list[Peer], scope: Scope) -> Proceedings:
    case, inputs = variant.case, session.inputs_of(variant.case)
    known = frameworks.framework(case.framework)
    folder = session.folder / "certificates"
    declared = frameworks.declared_form(known, case.optimizer)
    subject = Subject(
        job=jobs.certifying(session.plan, variant, inputs, folder / variant.file_name),
        network=workloads.described(Path(session.plan.workload_folders[case.workload]), case.sizes),
        peer=_peer(session, case.environment, case.settings.mode),
        inputs=inputs.identity,
        declared=declared,
        exact="float64" in known.precisions and case.framework in group.float64,
        scope=scope,
    )
    form = "-".join([case.optimizer.name, *map(str, declared.values())])
    reference = folder / f"reference-{case.workload}.{case.preset}-{recipe(case)[:8]}-{form}"
    return jobs_for(subject, peers, reference)


def _peers(session: Session, group: Group) -> list[Peer]:
    """Return the frameworks whose float64 is the reference: of this run where it has any, else made for the purpose."""
    scripted = any(frameworks.framework(case.framework).scripted for case in group.cases)
    able = [
        name
        for name, known in frameworks.all_frameworks().items()
        if known.reference and (scripted or not known.scripted) and name in group.float64
    ]
    # The first runs three times, so those that take long to compile come last.
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
            session.run_aside(task.job)
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
