"""Dumped tensors -> a judgement: does the candidate compute what the float64 reference computes? Pure.

Rounding levels come from noisy runs of the reference (see `method`); every tensor's relative L2 error is held against
its own level, in the order of `tensors.places`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from steelyard.certificates.method import method
from steelyard.certificates.tensors import expected_shapes, places, state_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.certificates.method import Method
    from steelyard.certificates.tensors import Array, Place, Tensors
    from steelyard_worker.network import Network


@dataclass(frozen=True)
class Scale:
    """How the error of one tensor is measured: relative to `norm`; one rounding of everything causes u * `amplified`.

    `norm` is the reference's L2 norm, for states the norm of their change since the start (the whole tensor's where
    it never changes, 1 where that is zero). `roundings` bounds the absolute error that keeping a state in memory costs,
    in units of u: two roundings of the whole tensor at every step.
    """

    norm: float
    amplified: float
    roundings: float = 0.0


@dataclass(frozen=True)
class Finding:
    """One tensor: its relative error, its rounding level and the error that would have been allowed.

    The error of a state is what exceeds `stored`, the cost of keeping it in memory, both relative to its change
    since the start.
    """

    key: str
    said: str
    stage: str
    error: float
    level: float
    allowed: float
    stored: float = 0.0

    @property
    def units(self) -> float:
        """The error in rounding levels."""
        return self.error / self.level

    @property
    def limit(self) -> float:
        """The allowed error in rounding levels."""
        return self.allowed / self.level

    @property
    def passed(self) -> bool:
        """Within the limit; a NaN is not."""
        return self.error <= self.allowed

    @property
    def sentence(self) -> str:
        """Say how far off the tensor is."""
        return (
            f"{self.said} is off by {self.error:.1e} "
            f"({_grouped(self.units)} times the rounding level; limit {_grouped(self.limit)})"
        )


@dataclass(frozen=True)
class Judgement:
    """`first`: the first tensor beyond its limit; `worst`: the one closest to or farthest beyond it.

    `resolution`: for each stage, the median error that would have been allowed: what the certificate can see.
    `agreement`: the largest relative difference of two float64 references; None with one reference.
    """

    passed: bool
    sentence: str
    findings: tuple[Finding, ...] = ()
    agreement: float | None = None

    @property
    def first(self) -> Finding | None:
        """The first tensor in causal and network order that is beyond its limit."""
        return next((finding for finding in self.findings if not finding.passed), None)

    @property
    def worst(self) -> Finding | None:
        """The tensor with the largest share of its allowed error."""
        return max(self.findings, key=_share, default=None)

    @property
    def resolution(self) -> dict[str, float]:
        """Median allowed relative error of each stage."""
        stages: dict[str, list[float]] = {}
        for finding in self.findings:
            stages.setdefault(finding.stage, []).append(finding.allowed + finding.stored)
        return {stage: float(np.median(allowed)) for stage, allowed in stages.items()}


def judge(
    network: Network, variants: Sequence[Tensors], second: Tensors | None, candidate: Tensors, wanted: Method
) -> Judgement:
    """Judge a candidate from everything that was dumped.

    `variants`: the reference (float64), then its noisy runs; `second`: another framework's float64 run. The references
    are compared first; a candidate is never held against references that disagree.
    """
    scales = measure_scales(network, variants, wanted.noise)
    agreed = agree(network, variants[0], scales, second) if second is not None else None
    if agreed is not None and not agreed.passed:
        return agreed
    return compare(network, variants[0], scales, candidate, wanted, agreed.agreement if agreed else None)


def agree(network: Network, reference: Tensors, scales: dict[str, Scale], second: Tensors) -> Judgement:
    """Compare two float64 references: AGREEMENT, or the limit in float64 roundings where training amplifies those."""
    found = compare(network, reference, scales, second, method("float64"))
    largest = max((finding.error for finding in found.findings), default=math.nan)
    if found.passed:
        return Judgement(True, f"Two references agree to {largest:.1e}.", found.findings, largest)
    sentence = f"The two float64 references disagree, so nothing can be certified: {found.sentence}"
    return Judgement(False, sentence, found.findings, largest)


def compare(
    network: Network, reference: Tensors, scales: dict[str, Scale], candidate: Tensors, wanted: Method,
    agreement: float | None = None,
) -> Judgement:  # fmt: skip
    """Hold every tensor of a candidate against the reference; names and shapes first."""
    ordered = places(reference, network)
    if complaint := _complaint(expected_shapes(network, reference), candidate, ordered):
        return Judgement(False, complaint, (), agreement)
    findings = tuple(
        _finding(key, place, scales[key], _distance(candidate[key], reference[key]), wanted)
        for key, place in ordered.items()
    )
    return Judgement(all(f.passed for f in findings), _sentence(findings), findings, agreement)


def measure_scales(network: Network, variants: Sequence[Tensors], noise: float) -> dict[str, Scale]:
    """Return how every tensor of the reference is measured; `variants` as in `judge`, `noise` as they were run with."""
    ordered = places(variants[0], network)
    references = {key: _moved(variants[0], key) for key in ordered}
    norms = {key: _norm(array) or _norm(variants[0][key]) or 1.0 for key, array in references.items()}
    own = {
        key: max(1.0, *(_distance(_moved(run, key), array) / (norms[key] * noise) for run in variants[1:]))
        for key, array in references.items()
    }
    supported = _supported(ordered, own)
    roundings = {key: 2.0 * step * _norm(variants[0][key]) for key in ordered if (step := state_step(key))}
    return {key: Scale(norms[key], supported[key], roundings.get(key, 0.0)) for key in ordered}


def _moved(run: Tensors, key: str) -> Array:
    """Return the tensor; for a state, its change since the start."""
    if not state_step(key):
        return run[key]
    return np.subtract(run[key], run["after0/" + key.partition("/")[2]], dtype=np.float64)


def _supported(ordered: dict[str, Place], own: dict[str, float]) -> dict[str, float]:
    """Lift levels that are small by accident.

    A tensor of a pool (gradients, outputs, statistics of one step) has at least the pool's median level. A loss is one
    number in which noise can cancel: it has at least the level of the outputs and of the losses before it.
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


def _finding(key: str, place: Place, scale: Scale, distance: float, wanted: Method) -> Finding:
    level = wanted.unit_roundoff * scale.amplified
    allowed = max(wanted.limit * level, wanted.allowance)
    stored = wanted.unit_roundoff * scale.roundings / scale.norm
    error = distance / scale.norm
    beyond = 0.0 if error <= stored else error - stored
    return Finding(key, place.said, place.heading, beyond, level, allowed, stored)


def _complaint(expected: dict[str, tuple[int, ...]], candidate: Tensors, ordered: dict[str, Place]) -> str:
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
    worst = max(findings, key=_share)
    return (
        f"{len(findings)} tensors agree with the float64 reference within rounding; the farthest, {worst.said}, "
        f"is at {_grouped(worst.units)} rounding levels of {_grouped(worst.limit)}."
    )


def _share(finding: Finding) -> float:
    share = finding.error / finding.allowed
    return math.inf if math.isnan(share) else share


def _distance(left: Array, right: Array) -> float:
    return _norm(np.subtract(left, right, dtype=np.float64))


def _norm(array: Array) -> float:
    flat = np.asarray(array, np.float64).reshape(-1)
    return math.sqrt(float(np.dot(flat, flat)))


def _capital(text: str) -> str:
    """Sentences start with a capital letter, canonical names do not change."""
    return text[:1].upper() + text[1:] if text.startswith("the ") else text


def _grouped(value: float) -> str:
    if not math.isfinite(value):
        return "infinitely many"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"

