"""Dumped tensors -> a judgement: does the candidate compute what the float64 reference computes? Pure.

Rounding levels come from noisy runs of the reference (see `method`); every tensor's relative L2 error is held against its
own level, in the order of `tensors.places`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from steelyard.certificates.method import AGREEMENT_SHARE, TURNED_CHANCE, UNIT_ROUNDOFFS, correction_roundings, method
from steelyard.certificates.tensors import expected_shapes, places, state_step, trained_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.certificates.method import Method
    from steelyard.certificates.tensors import Array, Place, Tensors
    from steelyard_worker.case import Optimizer
    from steelyard_worker.network import Network


# From here on, digits tell a person nothing.
MANY = 1e7


@dataclass(frozen=True)
class Scale:
    """How the error of one tensor is measured: relative to `norm`; one rounding of everything causes u * `amplified`.

    `norm` is the reference's L2 norm, for states the norm of their change since the start (the whole tensor's where it never
    changes, 1 where that is zero). `roundings` bounds what cannot be avoided and is not charged, absolute, in units of u:
    two roundings of a state at every step, and bias correction where a rule is declared to compute it in float32.
    """

    norm: float
    amplified: float
    roundings: float = 0.0


@dataclass(frozen=True)
class Finding:
    """One tensor: its relative error beyond what is `granted`, its rounding level, and the error that is allowed."""

    key: str
    said: str
    stage: str
    error: float
    level: float
    allowed: float
    granted: float = 0.0

    @property
    def units(self) -> float:
        """The error in rounding levels."""
        return self.error / self.level

    @property
    def limit(self) -> float:
        """The allowed error in rounding levels."""
        return self.allowed / self.level

    @property
    def share(self) -> float:
        """The error as a share of what is allowed; infinite for a NaN."""
        share = self.error / self.allowed
        return math.inf if math.isnan(share) else share

    @property
    def passed(self) -> bool:
        """Within the limit."""
        return self.share <= 1

    @property
    def sentence(self) -> str:
        """Say how far off the tensor is."""
        levels = f"{grouped(self.units)} times the rounding level; limit {grouped(self.limit)}"
        return f"{self.said} is off by {self.error:.1e} ({levels})"


@dataclass(frozen=True)
class Judgement:
    """Every tensor's finding in causal order, and what they come to in one sentence.

    `agreement`: the largest relative difference of two float64 references; None with one reference.
    """

    passed: bool
    sentence: str
    findings: tuple[Finding, ...] = ()
    agreement: float | None = None

    @property
    def first(self) -> Finding | None:
        """The first tensor, in causal and network order, that is beyond its limit."""
        return next((finding for finding in self.findings if not finding.passed), None)

    @property
    def worst(self) -> Finding | None:
        """The tensor with the largest share of its allowed error."""
        return max(self.findings, key=lambda finding: finding.share, default=None)

    @property
    def largest(self) -> float:
        """The largest relative error."""
        return max((finding.error for finding in self.findings), default=math.nan)

    @property
    def resolution(self) -> dict[str, float]:
        """For each stage, the median relative error that would have passed: what the certificate can see."""
        stages: dict[str, list[float]] = {}
        for finding in self.findings:
            stages.setdefault(finding.stage, []).append(finding.allowed + finding.granted)
        return {stage: float(np.median(allowed)) for stage, allowed in stages.items()}


def judge(
    network: Network, variants: Sequence[Tensors], second: Tensors | None, candidate: Tensors, wanted: Method,
    rule: Optimizer | None = None,
) -> Judgement:  # fmt: skip
    """Judge a candidate from everything that was dumped.

    `variants`: the reference (float64), then its noisy runs; `second`: another framework's float64 run; `rule`: the update rule
    of the reference. References are compared first; a candidate is never held against references that disagree.
    """
    scales = measure_scales(network, variants, wanted.noise, rule)
    agreed = agree(network, variants[0], scales, second) if second is not None else None
    if agreed is not None and not agreed.passed:
        return agreed
    return compare(network, variants[0], scales, candidate, wanted, agreed.agreement if agreed else None)


def agree(
    network: Network, reference: Tensors, scales: Mapping[str, Scale], second: Tensors,
    titles: tuple[str, str] = ("One reference", "the other"),
) -> Judgement:  # fmt: skip
    """Compare two float64 references: AGREEMENT, or the limit in float64 roundings where training amplifies those.

    They may also differ by a small share of what is a rounding level to the candidates. `titles` name them in the sentence.
    """
    negligible = {key: AGREEMENT_SHARE * UNIT_ROUNDOFFS["float32"] * scale.amplified for key, scale in scales.items()}
    found = compare(network, reference, scales, second, method("float64"), sums=negligible)
    sentence = f"Two float64 references agree to {found.largest:.1e}."
    if not found.passed:
        first = found.first
        off = f"{first.said} is off by {first.error:.1e}" if first else continued(found.sentence).rstrip(".")
        more = sum(not finding.passed for finding in found.findings) - 1
        others = f", and {more} more after it" if more > 0 else ""
        sentence = f"{titles[0]} and {titles[1]} disagree in float64, so nothing can be certified: {off}{others}."
    return Judgement(found.passed, sentence, found.findings, found.largest)


def compare(
    network: Network, reference: Tensors, scales: Mapping[str, Scale], candidate: Tensors, wanted: Method,
    agreement: float | None = None, sums: Mapping[str, float] | None = None,
) -> Judgement:  # fmt: skip
    """Hold every tensor of a candidate against the reference; names and shapes first.

    `sums`: relative errors allowed besides, for a candidate whose float64 run has proved its definition (`measure_sums`).
    """
    ordered = places(reference, network)
    if complaint := _complaint(expected_shapes(network, reference), candidate, ordered):
        return Judgement(False, complaint, (), agreement)
    granted = sums or {}
    findings = tuple(
        _finding(key, place, scales[key], _distance(candidate[key], reference[key]), wanted, granted.get(key, 0.0))
        for key, place in ordered.items()
    )
    return Judgement(all(finding.passed for finding in findings), _sentence(findings), findings, agreement)


def measure_scales(
    network: Network, variants: Sequence[Tensors], noise: float, rule: Optimizer | None = None
) -> dict[str, Scale]:
    """Return how every tensor is measured; `variants` and `rule` as in `judge`, `noise` as the variants were run with."""
    reference, noisy = variants[0], variants[1:]
    ordered = places(reference, network)
    norms = _norms(network, ordered, reference)
    changes = [_changes(reference, run, norms) for run in noisy]
    amplified = _supported(ordered, {key: max(1.0, *(each[key] / noise for each in changes)) for key in ordered})
    return {key: Scale(norms[key], amplified[key], _unavoidable(key, reference, norms[key], rule)) for key in ordered}


def _norms(network: Network, ordered: Mapping[str, Place], reference: Tensors) -> dict[str, float]:
    """Return what errors are relative to; the gradient of an idle tensor, zero but for rounding, is held against the others'."""
    norms = {key: _norm(_moved(reference, key)) or _norm(reference[key]) or 1.0 for key in ordered}
    idle = {f"grad/{parameter.name}" for parameter in network.parameters if parameter.idle}
    usual = [norm for key, norm in norms.items() if key.startswith("grad/") and key not in idle]
    return norms | {key: float(np.median(usual)) for key in idle & norms.keys() if usual}


def measure_sums(network: Network, reference: Tensors, scales: Mapping[str, Scale], noisy: Tensors) -> dict[str, float]:
    """Return the relative change of every tensor in a run with noise as large as a long sum, or a likelihood, may lose."""
    norms = {key: scale.norm for key, scale in scales.items()}
    changes = _supported(places(reference, network), _changes(reference, noisy, norms))
    turned = _turned(network, reference, noisy)
    return {key: max(change, turned.get(key, 0.0)) for key, change in changes.items()}


def _changes(reference: Tensors, run: Tensors, norms: Mapping[str, float]) -> dict[str, float]:
    return {key: _distance(_moved(run, key), _moved(reference, key)) / norm for key, norm in norms.items()}


def _turned(network: Network, reference: Tensors, noisy: Tensors) -> dict[str, float]:
    """Return what elements that were updated the other way may change in the state of a trained tensor, relative to its update.

    A rule that divides a gradient by its own size makes steps of full size out of gradients near zero, whose sign noise decides.
    In a small tensor few elements turn, in one noisy run mostly none. So turned elements are counted over all tensors of a step,
    and each tensor is allowed as many as the Poisson distribution of that rate exceeds once in TURNED_CHANCE tensors, of the size
    that they had.
    """
    found: dict[str, float] = {}
    trained = [each.name for each in network.parameters if each.trainable and not each.idle]
    for step in {state_step(key) for key in reference} - {0}:
        updates = {
            key: (_moved(reference, key), _moved(noisy, key)) for key in (f"after{step}/{name}" for name in trained)
        }
        each = [np.square(off - right)[off * right < 0] / np.mean(np.square(right)) for right, off in updates.values()]
        turned = np.concatenate(each)
        rate = turned.size / sum(right.size for right, _ in updates.values())
        for key, (right, _) in updates.items():
            found[key] = (
                math.sqrt(_at_most(rate * right.size) * float(turned.mean()) / right.size) if turned.size else 0.0
            )
    return found


def _at_most(mean: float) -> int:
    """Return the count that a Poisson distribution exceeds once in TURNED_CHANCE draws."""
    from scipy.special import pdtrik

    return math.ceil(max(0.0, float(pdtrik(1 - 1 / TURNED_CHANCE, mean))))


def _moved(run: Tensors, key: str) -> Array:
    """Return the tensor; for a state, its change since the start."""
    if not state_step(key):
        return run[key]
    return np.subtract(run[key], run["after0/" + key.partition("/")[2]], dtype=np.float64)


def _unavoidable(key: str, reference: Tensors, norm: float, rule: Optimizer | None) -> float:
    """Return the roundings that are not charged: of storing a state, and of a correction declared to be in float32."""
    stored = 2.0 * state_step(key) * _norm(reference[key]) if state_step(key) else 0.0
    updates = trained_steps(key, reference)
    return stored + (correction_roundings(rule, updates) * norm if rule and updates else 0.0)


def _supported(ordered: Mapping[str, Place], own: Mapping[str, float]) -> dict[str, float]:
    """Lift levels that are small by accident.

    A tensor of a pool (gradients, outputs, statistics of one step) has at least the pool's median level. A loss is one number in
    which noise can cancel: it has at least the level of the outputs and of the losses before it.
    """
    pools: dict[str, list[float]] = {}
    for key, place in ordered.items():
        pools.setdefault(place.pool, []).append(own[key])
    medians = {pool: float(np.median(values)) if pool else 0.0 for pool, values in pools.items()}
    lifted = {key: max(own[key], medians[place.pool]) for key, place in ordered.items()}
    running = max(pools.get("outputs", [0.0]))
    for key in [key for key, place in ordered.items() if place.pool == "loss"]:
        running = lifted[key] = max(own[key], running)
    return lifted


def _finding(key: str, place: Place, scale: Scale, distance: float, wanted: Method, sums: float) -> Finding:
    level = wanted.unit_roundoff * scale.amplified
    granted = wanted.unit_roundoff * scale.roundings / scale.norm
    error = distance / scale.norm
    beyond = 0.0 if error <= granted else error - granted
    return Finding(
        key, place.said, place.heading, beyond, level, max(wanted.limit * level, wanted.allowance, sums), granted
    )


def _complaint(expected: Mapping[str, tuple[int, ...]], candidate: Tensors, ordered: Mapping[str, Place]) -> str:
    """Name the first tensor that is missing, of another shape, or not part of the network."""
    for key, place in ordered.items():
        if key not in candidate:
            return f"{_capital(place.said)} is missing."
        if np.shape(candidate[key]) != expected[key]:
            return f"{_capital(place.said)} has shape {np.shape(candidate[key])}, expected {expected[key]}."
    extra = [key for key in candidate if key not in expected]
    return f"The dump holds {extra[0]}, which is not part of the network." if extra else ""


def _sentence(findings: tuple[Finding, ...]) -> str:
    beyond = [finding for finding in findings if not finding.passed]
    if beyond:
        others = f", and {len(beyond) - 1} more after it" if len(beyond) > 1 else ""
        return f"{_capital(beyond[0].sentence)}{others}."
    worst = max(findings, key=lambda finding: finding.share)
    return (
        f"{len(findings)} tensors agree with the float64 reference within rounding; the farthest, {worst.said}, is at "
        f"{grouped(worst.units)} rounding levels of {grouped(worst.limit)}."
    )


def _distance(left: Array, right: Array) -> float:
    return _norm(np.subtract(left, right, dtype=np.float64))


def _norm(array: Array) -> float:
    flat = np.asarray(array, np.float64).reshape(-1)
    return math.sqrt(float(np.dot(flat, flat)))


def _capital(text: str) -> str:
    """Sentences start with a capital letter, canonical names do not change."""
    return text[:1].upper() + text[1:] if text.startswith("the ") else text


def continued(sentence: str) -> str:
    """Return a sentence of this module as it stands after a colon."""
    return sentence[:1].lower() + sentence[1:] if sentence.startswith("The ") else sentence


def grouped(value: float) -> str:
    """Return a number of rounding levels as a person reads it."""
    if not math.isfinite(value):
        return "infinitely many"
    if value >= MANY:
        return f"{value:.0e}"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
