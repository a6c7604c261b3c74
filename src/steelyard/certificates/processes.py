"""The processes of a group's certificates: as many side by side as there is room for, and none twice that saved its tensors."""

import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from steelyard.catalog import workloads
from steelyard.certificates import dumps, inner, kernels, references, rule_checks
from steelyard.certificates.capacity import Gate, needed_bytes
from steelyard.certificates.plan import CertificationPlan, Task, with_cores
from steelyard.certificates.rule_plan import RulePlan
from steelyard.measure.processes import OUT_OF_MEMORY
from steelyard.measure.session import Session
from steelyard.plan import memory
from steelyard_worker.case import INFERENCE, Case
from steelyard_worker.network import Network

PROCESSES_AT_ONCE = 4


def network_of(session: Session, case: Case) -> Network:
    """Return the network that a case computes; without a loss, there is no recursion in it."""
    found = workloads.described(Path(session.plan.workload_folders[case.workload]), case.sizes)
    return replace(found, recursion=0) if case.task == INFERENCE else found


@dataclass(frozen=True)
class Processes:
    """Runs tasks of the group with this name.

    `again`: whether every task runs, also one whose tensors an interrupted command has saved.
    """

    session: Session
    group: str
    gate: Gate
    again: bool

    def run(self, wanted: list[Task], plans: Collection[CertificationPlan]) -> None:
        """Run every task of these plans once, as many at a time as the gate allows; nothing is timed here.

        References are summarised as soon as all of them have run, because what they save is large.
        """
        tasks = {task.job.folder: task for task in wanted}
        keys = _keys(plans)
        by_reference = {plan.reference_key: plan for plan in plans}
        by_rule = {plan.candidate.rule.job.folder: plan.candidate.rule for plan in plans if plan.candidate.rule}
        finished = set[str]()
        done = 0

        def run(task: Task) -> None:
            nonlocal done
            if self.session.stop.is_set():
                return
            if task.job.folder in by_rule:
                self._check(task, by_rule[task.job.folder])
            else:
                self._run(task, _key_of(task, keys))
            finished.add(task.job.folder)
            for plan in by_reference.values():
                folders = {each.job.folder for each in plan.reference_tasks}
                if task.job.folder in folders <= finished:
                    references.condense(plan)
            done += 1
            self.session.screen.progress(f"{self.group}: processes", done, len(tasks))

        if not tasks:
            return
        self.session.screen.progress(f"{self.group}: processes", 0, len(tasks))
        self.session.side_by_side(run, tasks.values(), PROCESSES_AT_ONCE)

    def clear(self, plans: Collection[CertificationPlan]) -> None:
        """Delete what further tasks of an interrupted command left, except tensors that can be used again.

        A folder without tensors would be read as the error of a process.
        """
        keys = _keys(plans)

        def usable(task: Task) -> bool:
            return dumps.kept(task, keys[task.job.folder])

        for tasks in chain.from_iterable((plan.inseparable_tasks, *plan.further_tasks) for plan in plans):
            complete = all(map(usable, tasks))
            for task in tasks:
                # What is judged together runs again, except references, which other candidates may use, too.
                if not complete and not (task.is_reference and usable(task)):
                    shutil.rmtree(task.job.folder, ignore_errors=True)
        for folder in keys:
            shutil.rmtree(Path(folder) / inner.FOLDER, ignore_errors=True)

    def _run(self, task: Task, key: str) -> None:
        case = task.job.case
        needed = needed_bytes(case, network_of(self.session, case))
        if not self.again and dumps.kept(task, key):
            return
        self._in_turn(task, key, needed)

    def _check(self, task: Task, rule: RulePlan) -> None:
        """Check an update rule by itself, unless that was done already, perhaps for another group in the meantime."""
        with rule_checks.alone(rule.key):
            if rule_checks.find(rule.key):
                return
            self._in_turn(task, rule.key, memory.PROCESS_BYTES)
            if dumps.is_done(task):
                rule_checks.conclude(rule, dumps.read(task))
                dumps.delete(Path(task.job.folder))

    def _in_turn(self, task: Task, key: str, needed: float) -> None:
        """Run a task when there is room for it; again alone, if it was killed for lack of memory beside others."""
        with self.gate.room(needed) as place:
            ran_out = self._start(task, key, needed)
        if ran_out and place.shared:
            # How much a process needs is an estimate, and other programs of the machine need memory, too.
            self.session.screen.say(
                f"{self.group}: a process of {task.job.case.framework} was killed beside others, so it runs again alone."
            )
            with self.gate.room(self.gate.whole):
                self._start(task, key, self.gate.whole)

    def _start(self, task: Task, key: str, needed: float) -> bool:
        """Run a task with its share of the cores; returns whether it ended for lack of memory."""
        if self.session.stop.is_set():
            return False
        shutil.rmtree(task.job.folder, ignore_errors=True)
        trial = self.session.run(with_cores(task, self.gate.cores(needed)))
        if task.job.variables.keys() >= kernels.VARIABLES.keys():
            kernels.condense(Path(task.job.folder))
        dumps.keep(task, key)
        return trial.error is not None and OUT_OF_MEMORY in trial.error[1]


def _keys(plans: Collection[CertificationPlan]) -> dict[str, str]:
    """Return what decides the results of each task, by its folder: the key of the references, or of the certificate."""
    return {
        task.job.folder: plan.reference_key if task.is_reference else plan.key
        for plan in plans
        for task in (*plan.reference_tasks, plan.candidate_task, *chain.from_iterable(plan.further_tasks))
    }


def _key_of(task: Task, keys: Mapping[str, str]) -> str:
    """Return the key of a task; what saves the inner tensors of another task has that task's."""
    folder = task.job.folder
    return keys[str(Path(folder).parent)] if task.job.certify.inner else keys[folder]
