"""Certificates for every case of a run, before anything is timed: cached ones are reused, the others are made in parallel."""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

from steelyard.catalog import frameworks, strategies, workloads
from steelyard.certificates import dumps, references, rule_checks, rule_plan
from steelyard.certificates import record as cache
from steelyard.certificates.capacity import Disk, Gate, next_part, saved_bytes
from steelyard.certificates.conclusion import conclude, next_tasks
from steelyard.certificates.evidence import Comparisons
from steelyard.certificates.method import Scope
from steelyard.certificates.plan import (
    SHARED,
    Candidate,
    CertificationPlan,
    Installation,
    Task,
    plan_certification,
    with_arbiter,
)
from steelyard.certificates.processes import PROCESSES_AT_ONCE, Processes, network_of
from steelyard.certificates.record import Certificate
from steelyard.certificates.references import has_reference
from steelyard.certificates.rule_plan import RulePlan
from steelyard.certificates.sources import digest
from steelyard.environments import EnvironmentName, setup
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.host import available_memory_bytes, usable_cores
from steelyard.inputs.case_inputs import recipe
from steelyard.measure import jobs
from steelyard.measure.session import SPARE_BYTES, Session
from steelyard.plan.run_plan import Group, Variant
from steelyard.results import record
from steelyard_worker import accumulation
from steelyard_worker.case import TRAINING, Case
from steelyard_worker.network import Network

DUMPS = "certificates"  # folder of a run
REFERENCES = 2
# While the last processes of one group run, those of the next use the other cores. More groups would fill the disk with dumps.
GROUPS_AT_ONCE = 2


def certify(session: Session, fresh: bool = False, scope: Scope | None = None) -> dict[str, dict[str, Any]]:
    """Certify every case; returns {case id: certificate}, which is also written into the run's folder."""
    if not session.plan.options.certify:
        return {}
    session.screen.stage("Certificates")
    scope = scope or Scope()
    # At full size one process may need the whole memory.
    cores = usable_cores()
    gate = Gate(1 if scope.sample else min(PROCESSES_AT_ONCE, cores), available_memory_bytes(), cores)
    disk = Disk(session.folder)
    installed = {group.name: _references(session, group) for group in session.plan.groups}
    certificates: dict[str, dict[str, Any]] = {}
    renewed: set[str] | None = set() if fresh else None
    lock = Lock()

    def work(groups: list[Group]) -> None:
        for group in groups:
            if not session.stop.is_set():
                with session.environments.waits.work():
                    certify_parts(group)

    def certify_parts(group: Group) -> None:
        for part in _in_order_of_arrival(session, group):
            plain = replace(
                part, variants=tuple(replace(each, case=frameworks.as_certified(each.case)) for each in part.variants)
            )
            found = _of_variants(
                part, _certify_group(session, plain, installed[group.name], renewed, scope, gate, disk)
            )
            with lock:
                certificates.update(found)
                atomic.write_text(session.folder / record.CERTIFICATES, json.dumps(certificates, indent=1))
                for case_id, certificate in found.items():
                    if not certificate["passed"]:
                        session.screen.say(
                            f"Not certified: {session.plan.by_id[case_id].key}. {certificate['sentence']}"
                        )

    session.side_by_side(work, together(session.plan.groups), 1 if scope.sample else GROUPS_AT_ONCE)
    shutil.rmtree(session.folder / DUMPS / SHARED, ignore_errors=True)
    ids = [variant.case.id for variant in session.plan.variants]
    return {case_id: certificates[case_id] for case_id in ids if case_id in certificates}


def together(groups: Iterable[Group]) -> list[list[Group]]:
    """Return the groups in lists: those of a list certify some of the same cases, so that one uses the certificates of another.

    A network with dropout, for example, has the certificate of the same network without.
    """
    found: list[tuple[set[str], list[Group]]] = []
    for group in groups:
        cases = {frameworks.as_certified(case).id for case in group.cases}
        alike = [each for each in found if each[0] & cases]
        found = [each for each in found if not each[0] & cases]
        found.append((cases.union(*(ids for ids, _ in alike)), [*chain.from_iterable(of for _, of in alike), group]))
    return [of for _, of in found]


def _of_variants(group: Group, found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the certificates by the ids of the variants' own cases; one that was made with other knobs says so.

    The losses and updates of a trial with these knobs are not those of the certificate, so they cannot be compared.
    """
    keys = {case.id: frameworks.as_certified(case).id for case in group.cases}
    own = {key: found[certified] for key, certified in keys.items() if certified in found}
    without: dict[str, Any] = {"losses": [], "loss_limits": [], "updates": {}, "update_limits": {}}
    return {
        key: each if key == keys[key] else {**each, **without, "sentence": f"{group.apart} {each['sentence']}"}
        for key, each in own.items()
    }


def _in_order_of_arrival(session: Session, group: Group) -> Iterator[Group]:
    """Return the group in parts: the variants whose environments are ready, then those that have become ready, and so on.

    Variants whose environment could not be made are left out.
    """
    waiting = group.variants
    while waiting and not session.stop.is_set():
        arrived = session.environments.next_ready({each.case.environment for each in waiting})
        ready = tuple(each for each in waiting if each.case.environment in arrived)
        waiting = tuple(each for each in waiting if each not in ready)
        if usable := tuple(each for each in ready if _is_available(session, each.case)):
            yield replace(group, variants=usable)


def _is_available(session: Session, case: Case) -> bool:
    """Return whether all environments of a case exist; waits for the one that exports its network."""
    needed = session.plan.environments_of(case)
    for name in needed:
        session.environments.next_ready([name])
    return all(name in session.environments for name in needed)


def _certify_group(
    session: Session,
    group: Group,
    installed: list[Installation],
    renewed: set[str] | None,
    scope: Scope,
    gate: Gate,
    disk: Disk,
) -> dict[str, dict[str, Any]]:
    """Certify the cases of one group and delete its dumps; an aborted run gets no certificates.

    `renewed`: keys of the references and certificates that this command has computed; None where all cached results are used.
    """
    if reason := _nothing_to_compare(group):
        return {case.id: {"passed": False, "sentence": reason} for case in group.cases}
    others = _computed_otherwise(group, session.plan.workload_folders)
    variants = [each for each in group.variants if each.case.id not in others]
    plans = {each.case.id: _plan(session, group, each, installed, scope) for each in variants if installed}
    _forget(plans.values(), renewed)
    if renewed is None:
        known = {key: plan for key, plan in plans.items() if has_reference(plan)}
        plans |= _arbitrated(session, group, known)
    usable = {key: plan for key, plan in plans.items() if renewed is None or plan.key in renewed}
    found: dict[str, Certificate | str]
    found = {key: cached for key, plan in usable.items() if (cached := cache.find(plan.key))}
    # Cases that differ only in what a certificate does not depend on, such as the workers of a loader, are computed once.
    alike = {plan.key: key for key, plan in reversed(plans.items())}
    missing = {key: plan for key, plan in plans.items() if key not in found and alike[plan.key] == key}
    if missing:
        network = network_of(session, group.cases[0])
        with disk.room(saved_bytes(missing.values(), network)) as reserved:
            while missing and not session.stop.is_set():
                left = min(reserved, disk.free_bytes())
                part = next_part(missing, network, left - SPARE_BYTES)
                session.check_room(f"The certificates of {group.name}", saved_bytes(part.values(), network), left)
                found |= _computed(session, group, part, renewed, gate)
                missing = {key: plan for key, plan in missing.items() if key not in part}
    if session.stop.is_set():
        return {}
    found |= {
        key: found[alike[plan.key]] for key, plan in plans.items() if key not in found and alike[plan.key] in found
    }
    return {case.id: others.get(case.id) or _as_dict(found.get(case.id)) for case in group.cases}


def _computed(
    session: Session, group: Group, missing: dict[str, CertificationPlan], renewed: set[str] | None, gate: Gate
) -> dict[str, Certificate | str]:
    """Run the processes of certificates, judge what they saved, and delete it; nothing where the run is aborted."""
    processes = Processes(session, group.name, gate, again=renewed is not None)
    processes.clear(missing.values())
    processes.run([task for plan in missing.values() for task in _first_tasks(plan)], missing.values())
    if not session.stop.is_set():
        missing = _decided(session, group, missing, renewed, processes)
    shared = Comparisons()
    known = {key: shared.of_another_candidate() for key in missing}
    while not session.stop.is_set():
        further = [task for key, plan in missing.items() for task in _next_tasks(plan, known[key])]
        if not further:
            break
        processes.run(further, missing.values())
    if session.stop.is_set():
        return {}
    concluded = {key: _conclude(plan, known[key]) for key, plan in missing.items()}
    if renewed is not None:  # for one that was not saved, the cache may still have that of an earlier command
        passed = {key for key, each in concluded.items() if isinstance(each, Certificate) and each.passed}
        renewed.update(missing[key].key for key in passed)
    _delete_dumps(missing.values())
    return concluded


def _computed_otherwise(group: Group, folders: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return what stands in place of a certificate for the cases that compute something else on purpose."""
    found = {case.id: _otherwise(case, folders) for case in group.cases}
    return {
        key: {"passed": False, "sentence": f"{label.capitalize()}: {reason}.", "on_purpose": label}
        for key, (label, reason) in found.items()
        if label
    }


def _otherwise(case: Case, folders: Mapping[str, str]) -> tuple[str, str]:
    """Return what a case computes on purpose instead of the training as described: (label, reason); both empty if nothing is."""
    known = frameworks.framework(case.framework)
    label, reason = known.otherwise(case.settings, case.optimizer)
    spread, parts = known.spread(case.strategy), accumulation.parts_of(case.settings)
    if label or (spread is None and parts == 1):
        return label, reason
    network = workloads.described(Path(folders[case.workload]), case.sizes)
    reason = strategies.otherwise(spread, network) or accumulation.otherwise(parts, network)
    return "another algorithm" if reason else "", reason


def _nothing_to_compare(group: Group) -> str:
    """Return the reason why a workload that only one framework implements cannot be certified; empty where more do."""
    if len(group.implemented_by) > 1:
        return ""
    (only,), workload = group.implemented_by, group.cases[0].workload
    return f"Only {frameworks.framework(only).title} implements {workload}, so there is nothing to certify against."


def _plan(
    session: Session, group: Group, variant: Variant, installed: list[Installation], scope: Scope
) -> CertificationPlan:
    case, inputs = variant.case, session.inputs_of(variant.case)
    known = frameworks.framework(case.framework)
    folder = session.folder / DUMPS
    declared = frameworks.declared_form(known, case.optimizer)
    network = network_of(session, case)
    kinds = {each.kind for each in network.parameters}
    candidate = Candidate(
        job=jobs.certifying(session.plan, variant, inputs, folder / variant.file_name, scope.steps),
        network=network,
        installation=_installation(session, case.environment, case.settings.mode),
        inputs=inputs.identity,
        declared=declared,
        has_float64=case.framework in group.float64 and known.has_float64(case.settings, case.optimizer, kinds),
        scope=scope,
        exporter=_exporter(session, case),
        rule=_rule(session, variant, network, declared, folder),
    )
    form = "-".join([case.optimizer.name, *map(str, declared.values())])
    # Of one group, because groups with equal inputs may be certified at the same time.
    where = f"{case.workload}.{case.preset}-{recipe(case)[:8]}-{digest(group.name)[:8]}"
    reference_folder = folder / f"reference-{where}-{form}"
    return plan_certification(candidate, installed, reference_folder)


def _rule(
    session: Session, variant: Variant, network: Network, declared: Mapping[str, str], folder: Path
) -> RulePlan | None:
    """Return the check of the update rule of a training by itself; None where there is none."""
    case, inputs = variant.case, session.inputs_of(variant.case)
    if case.task != TRAINING:
        return None
    own = _installation(session, case.environment, case.settings.mode)
    return rule_plan.plan_rule(
        jobs.certifying(session.plan, variant, inputs, folder),
        network,
        case.environment,
        (own.version, dict(own.packages), own.contents),
        declared,
        inputs.steps_per_epoch,
        folder,
    )


def _exporter(session: Session, case: Case) -> Installation | None:
    """Return what exports the network of a case; None where its own framework has it."""
    name = frameworks.exporter_of(case)
    return _installation(session, name, "") if name else None


def _references(session: Session, group: Group, most: int = REFERENCES) -> list[Installation]:
    """Return the frameworks whose float64 results are the reference, preferably of this run; others get an environment."""
    scripted = any(frameworks.framework(case.framework).scripted for case in group.cases)
    able = [
        name
        for name, known in frameworks.all_frameworks().items()
        if known.reference and (scripted or not known.scripted) and name in group.float64
    ]
    # The first one runs three times; frameworks that compile for long come last.
    able.sort(key=lambda name: (name not in session.environments, frameworks.framework(name).reference))
    chosen: list[Installation] = []
    for name in able:
        if len(chosen) < most and _has_environment(session, name):
            known = frameworks.framework(name)
            chosen.append(_installation(session, name, known.reference_mode or known.default_mode))
    return chosen


def _has_environment(session: Session, name: str) -> bool:
    """Create the environment of a reference that is not in this run; it always computes on the CPU."""
    if name not in session.environments:
        with session.environments.waits.wait():
            made = setup.make([EnvironmentName(name)], "cpu", {}, session.screen)
            made.next_ready([name])
        if name in made:
            session.environments[name] = made[name]
    session.environments.next_ready(session.environments.keys() & {name})
    return name in session.environments


def _installation(session: Session, environment: str, mode: str) -> Installation:
    found = session.environments[environment]
    return Installation(found.framework, environment, mode, found.version, found.packages, found.contents)


def _arbitrated(session: Session, group: Group, plans: Mapping[str, CertificationPlan]) -> dict[str, CertificationPlan]:
    """Return the plans; those whose two references disagree get a third framework as a reference, if there is one."""
    two = {key: references.find(plan) for key, plan in plans.items() if len(plan.references) == REFERENCES}
    disputed = {key for key, found in two.items() if found and not found.agreed}
    third = _references(session, group, REFERENCES + 1)[REFERENCES:] if disputed else []
    return {key: with_arbiter(plan, *third) if third and key in disputed else plan for key, plan in plans.items()}


def _decided(
    session: Session,
    group: Group,
    plans: Mapping[str, CertificationPlan],
    renewed: set[str] | None,
    processes: Processes,
) -> dict[str, CertificationPlan]:
    """Let a third framework compute where two references disagree; if it fails, the plan stays as it is."""
    arbitrated = _arbitrated(session, group, plans)
    changed = {key: plan for key, plan in arbitrated.items() if plan is not plans[key]}
    _forget(changed.values(), renewed)
    processes.run([plan.reference_tasks[0] for plan in changed.values() if not has_reference(plan)], changed.values())
    failed = {key for key, plan in changed.items() if not references.find(plan)}
    return {key: plans[key] if key in failed else plan for key, plan in arbitrated.items()}


def _forget(plans: Iterable[CertificationPlan], renewed: set[str] | None) -> None:
    """Delete cached references, each once: a later part of the group uses what an earlier one has computed."""
    if renewed is None:
        return
    for plan in plans:
        if plan.reference_key not in renewed:
            references.forget(plan)
            renewed.add(plan.reference_key)
        if plan.candidate.rule and plan.candidate.rule.key not in renewed:
            rule_checks.forget(plan.candidate.rule.key)
            renewed.add(plan.candidate.rule.key)


def _first_tasks(plan: CertificationPlan) -> list[Task]:
    missing = [] if has_reference(plan) else list(plan.reference_tasks)
    rule = plan.candidate.rule
    unchecked = [rule_checks.task_of(rule)] if rule and not rule_checks.find(rule.key) else []
    return [*missing, plan.candidate_task, *unchecked]


def _next_tasks(plan: CertificationPlan, known: Comparisons) -> tuple[Task, ...]:
    """Return what must run next where rounding alone does not decide; `_conclude` reports a failed reference."""
    try:
        return next_tasks(plan, known)
    except UserError:
        return ()


def _conclude(plan: CertificationPlan, known: Comparisons) -> Certificate | str:
    """Return the certificate, or why there is none."""
    try:
        return conclude(plan, known)
    except UserError as error:
        return str(error)


def _delete_dumps(plans: Iterable[CertificationPlan]) -> None:
    """Delete the saved tensors, which are large; the results are in the certificates, the references in the cache."""
    for plan in plans:
        for task in (*plan.reference_tasks, plan.candidate_task, *chain.from_iterable(plan.further_tasks)):
            dumps.delete(Path(task.job.folder))


def _as_dict(found: Certificate | str | None) -> dict[str, Any]:
    if found is None:
        return {"passed": False, "sentence": "No framework with reliable float64 results is available to compare with."}
    return {"passed": False, "sentence": found} if isinstance(found, str) else asdict(found)
