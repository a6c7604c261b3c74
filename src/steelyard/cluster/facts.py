"""The facts of a node and whether it is fit to measure on; examined on that node."""

import os
from dataclasses import dataclass

from steelyard import host
from steelyard.environments import list_environments
from steelyard.host import exclusive
from steelyard.host.machine import Machine
from steelyard.measure import doctor
from steelyard.measure.doctor import Finding


@dataclass(frozen=True)
class NodeFacts:
    """The facts of a node. `load`: runnable processes, mean over a minute; `measuring`: the run that has its turn.

    `findings`: those of `steelyard doctor` that concern the machine itself.
    """

    machine: Machine
    fingerprint: str
    available_bytes: int
    load: float
    measuring: str
    findings: tuple[Finding, ...]

    @property
    def fit(self) -> bool:
        """Whether nothing prevents measuring here."""
        return not any(each.state == "bad" for each in self.findings)


def examine() -> NodeFacts:
    """Return the facts of this machine; takes about 3 s."""
    machine = host.describe()
    installed = list_environments()
    checks = [doctor.memory, doctor.cores, doctor.governor, doctor.accelerators]
    # The environments that a run needs are known later. A node without room for one of them is given up then.
    room = doctor.disk(installed, all_needed=False)
    # Host noise is measured after all other checks, because they would add to the load.
    findings = (room, *(check(machine) for check in checks), doctor.host_noise())
    return NodeFacts(
        machine, machine.fingerprint(), host.available_memory_bytes(), os.getloadavg()[0], exclusive.holder(), findings
    )
