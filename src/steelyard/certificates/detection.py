"""Which mistakes a certificate would have shown: the tensors in which an error of a stated size is beyond the limit. Pure."""

from collections.abc import Sequence

import numpy as np

from steelyard.certificates.judgement import Finding, Judgement
from steelyard.certificates.tensors import state_step
from steelyard.statistics.sentences import listed
from steelyard_worker.network import Network

# Relative errors, by their names in a certificate.
SIZES = {"1 %": 1e-2, "0.1 %": 1e-3}
# The size that a sentence is about, and the share of gradients in which it should be seen.
STATED, ENOUGH = "1 %", 0.9
OUTPUTS = ("output", "inference output")


def shares(judgement: Judgement) -> dict[str, dict[str, float]]:
    """Return, for each stage and size of error, the share of its tensors in which that error would have been beyond the limit.

    In a single tensor, relative to it or, of a state, to its change; of a loss that is measured in nats, in nats.
    """
    stages: dict[str, list[Finding]] = {}
    for finding in judgement.findings:
        stages.setdefault(finding.stage, []).append(finding)
    return {
        stage: {name: sum(_seen(judgement, found, size)) / len(found) for name, size in SIZES.items()}
        for stage, found in stages.items()
    }


def hidden(judgement: Judgement) -> float:
    """Return the relative error below which mistakes in gradients may pass; 0 where nearly all show the stated one."""
    gradients = [finding for finding in judgement.findings if finding.kind == "gradient"]
    seen = _seen(judgement, gradients, SIZES[STATED])
    if sum(seen) >= ENOUGH * len(seen):
        return 0.0
    return float(np.quantile(_smallest(judgement, gradients), ENOUGH, method="inverted_cdf"))


def sentence(judgement: Judgement, network: Network, alone: str = "") -> str:
    """Return in how many tensors a mistake of the stated size would have been seen; empty where in all of them.

    `alone`: the candidate's precision, where its definition was judged by a run in float64, so that only a mistake in that
    precision is left to be seen here.
    """
    trained = {each.name for each in network.parameters if each.trainable}
    groups = {
        "output": [each for each in judgement.findings if each.kind in OUTPUTS],
        "gradient": [each for each in judgement.findings if each.kind == "gradient"],
        "update of the first step": [
            each
            for each in judgement.findings
            if each.kind == "state" and state_step(each.key) == 1 and each.key.rpartition("/")[2] in trained
        ],
    }
    counts = {name: _seen(judgement, found, SIZES[STATED]) for name, found in groups.items() if found}
    if all(map(all, counts.values())):
        return ""
    where = f", in {alone} alone," if alone else ""
    found = listed([_counted(name, seen) for name, seen in counts.items()])
    return f"A mistake of {STATED} in a single tensor{where} would be seen {found}."


def _counted(name: str, seen: Sequence[bool]) -> str:
    if not any(seen):
        return f"in no {name}"
    what, _, when = name.partition(" ")
    which = "all" if all(seen) else f"{sum(seen):,} of {len(seen):,}"
    return f"in {which} {what}s {when}".rstrip()


def _seen(judgement: Judgement, findings: Sequence[Finding], size: float) -> list[bool]:
    return [size > smallest for smallest in _smallest(judgement, findings)]


def _smallest(judgement: Judgement, findings: Sequence[Finding]) -> list[float]:
    """Return the largest error that each tensor may have where it is judged most strictly."""
    few = {each.key: each.allowed + each.unavoidable for each in judgement.few}
    return [min(each.allowed + each.unavoidable, few.get(each.key, np.inf)) for each in findings]
