"""Runs mutants of update rules: a copy of the worker with an edit trains the few tensors with given gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from threading import Semaphore
from typing import TYPE_CHECKING

from mutant_bench import Server, copy_worker

from steelyard.catalog import frameworks
from steelyard.certificates import rule_checks, rule_plan
from steelyard_worker import network, tensors
from steelyard_worker.case import Case, Optimizer, Settings
from steelyard_worker.protocol import Data, Job

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from steelyard.certificates.rule_checks import RuleCheck

OWN = network.describe(rule_plan.FOLDER, {"batch": 1})
NAMES = tuple(each.name for each in OWN.parameters if each.trainable)


@dataclass(frozen=True)
class Mutant:
    """One mistake: `text` of a file of the worker is replaced; `names` is text that the sentence must contain."""

    name: str
    framework: str
    rule: Optimizer
    names: str
    file: str = ""
    text: str = ""
    replacement: str = ""


class Bench:
    """Runs mutated workers, one after the other in each framework."""

    def __init__(self, folder: Path, interpreter: Callable[[str], Path], stack: ExitStack) -> None:
        self._folder, self._interpreter, self._stack = folder, interpreter, stack
        self._servers: dict[str, Server] = {}
        self._count = 0

    def check(self, mutant: Mutant) -> RuleCheck:
        """Return the check of the rule of a mutant."""
        self._count += 1
        folder = self._folder / str(self._count)
        known = frameworks.framework(mutant.framework)
        case = Case(
            "any",
            "tiny",
            {"batch": 1},
            "",
            {},
            mutant.rule,
            mutant.framework,
            known.complete(Settings(known.default_mode, threads=1)),
        )
        job = Job("certify", case, "", "", Data(""), "", variables=dict(known.untimed_variables))
        declared = frameworks.declared_form(known, mutant.rule)
        plan = rule_plan.plan_rule(job, OWN, mutant.framework, (), declared, 1, folder)
        assert plan
        worker = copy_worker(folder)
        if mutant.file:
            source = (worker / mutant.file).read_text(encoding="utf-8")
            assert source.count(mutant.text) == 1, f"{mutant.name}: correct the mutant."
            (worker / mutant.file).write_text(source.replace(mutant.text, mutant.replacement), encoding="utf-8")
        own = replace(plan.job, workload_folder=str(worker / rule_plan.NAME))
        self._server(mutant.framework).run(own, worker)
        log = Path(own.folder) / "output.log"
        saved = Path(own.folder) / "perturbation0"
        assert saved.is_dir(), log.read_text(encoding="utf-8")[-2000:]
        return rule_checks.conclude(plan, tensors.read(saved))

    def _server(self, framework: str) -> Server:
        if framework not in self._servers:
            found = Server(framework, self._interpreter(framework), self._folder, Semaphore(1))
            self._stack.callback(found.close)
            self._servers[framework] = found
        return self._servers[framework]
