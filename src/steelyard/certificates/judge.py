"""Compare a candidate's tensors, or a second reference's, with the float64 reference. Pure.

The relative L2 error of every tensor is compared with that tensor's own rounding level (see `method`), in the order of
`tensors.places`.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from steelyard.certificates import sentences
from steelyard.certificates.judgement import Finding, Judgement
from steelyard.certificates.method import (
    AGREEMENT_SHARE,
    LEAST_FLOAT32_ERROR,
    SMALLEST_LIKELIHOOD,
    UNIT_ROUNDOFFS,
    Method,
    method_for,
)
from steelyard.certificates.scales import Scale, after_chaos
from steelyard.certificates.tensors import Place, Tensors, expected_shapes, is_loss, places, state_step
from steelyard_worker.distances import change, l2_distance, start_of
from steelyard_worker.network import Network

# A ratio to the reference is told if it is this far from 1 and leaves no more than this share of the difference unexplained.
LEAST_RATIO, LEAST_RATIO_OF_ONE, RATIO_REST = 0.005, 0.5, 0.1


def compare(
    network: Network,
    reference: Tensors,
    scales: Mapping[str, Scale],
    candidate: Tensors,
    limits: Method,
    agreement: float | None = None,
    allowances: Mapping[str, float] | None = None,
) -> Judgement:
    """Compare every tensor of a candidate with the reference; names and shapes first.

    `allowances`: relative errors that are allowed in addition to rounding, by tensor (see `escalation`). In float64, what follows
    chaos has the limits of float32: rounding levels are measured with noise of that size.
    """
    ordered = places(reference, network)
    if difference := _structural_difference(expected_shapes(network, reference), candidate, ordered):
        return Judgement(False, difference, (), agreement)
    extra = dict(allowances or {})
    single = method_for("float32")
    if limits.unit_roundoff < single.unit_roundoff:
        for key in after_chaos(network, ordered, scales, limits.noise):
            coarse = single.limit * single.unit_roundoff * scales[key].amplification
            extra[key] = max(extra.get(key, 0.0), coarse)
    findings = tuple(
        _finding(key, place, scales[key], l2_distance(candidate[key], reference[key]), limits, extra.get(key, 0.0))
        for key, place in ordered.items()
    )
    findings = tuple(
        each if each.passed else replace(each, ratio=_ratio(each.key, candidate, reference)) for each in findings
    )
    if not network.likelihood:
        findings = tuple(_as_a_likelihood(each, scales[each.key].norm) for each in findings)
    passed = all(finding.passed for finding in findings)
    if passed and (changed := _changed_though_fixed(network, reference, candidate, ordered)):
        return Judgement(False, sentences.changed_though_fixed(changed), (), agreement)
    return Judgement(passed, sentences.same(findings) if passed else sentences.different(findings), findings, agreement)


def compare_references(network: Network, reference: Tensors, scales: Mapping[str, Scale], second: Tensors) -> Judgement:
    """Compare two float64 references: AGREEMENT, or the limit in float64 roundings where training amplifies those.

    They may also differ by a small share of a candidate's rounding level. The sentence of a second one that differs by no more
    than float32 rounding says so. What follows chaos has no part in the agreement.
    """
    negligible = {
        key: AGREEMENT_SHARE * UNIT_ROUNDOFFS["float32"] * scale.amplification for key, scale in scales.items()
    }
    found = compare(network, reference, scales, second, method_for("float64"), allowances=negligible)
    rounded = compare(network, reference, scales, second, method_for("float32"))
    chaotic = after_chaos(network, places(reference, network), scales, method_for("float64").noise)
    calm = replace(found, findings=tuple(each for each in found.findings if each.key not in chaotic))
    found = replace(found, agreement=calm.largest)
    if found.passed or not found.findings:
        return found
    single = rounded.passed and found.largest >= LEAST_FLOAT32_ERROR
    return replace(found, sentence=sentences.reference_difference(found.findings, single))


def _finding(key: str, place: Place, scale: Scale, distance: float, limits: Method, allowance: float) -> Finding:
    level = limits.unit_roundoff * scale.amplification
    unavoidable = limits.unit_roundoff * scale.unavoidable / scale.norm
    error = distance / scale.norm
    counted = 0.0 if error <= unavoidable else error - unavoidable
    allowed = max(limits.limit * level, limits.allowance, allowance)
    return Finding(key, place.label, place.heading, place.kind, counted, level, allowed, unavoidable, scale.in_nats)


def _ratio(key: str, candidate: Tensors, reference: Tensors) -> float | None:
    """Return the least-squares ratio of a tensor to the reference's where it explains the error, and differs from 1 visibly.

    That of a single number always does, so it counts only where the number is about zero, twice as large, or more.
    """
    own, exact = (np.asarray(change(each, key), np.float64).reshape(-1) for each in (candidate, reference))
    square = float(exact @ exact)
    if not square or not np.isfinite(own).all():
        return None
    ratio = float(own @ exact) / square
    rest = l2_distance(own, ratio * exact) / square**0.5
    visible = LEAST_RATIO_OF_ONE if exact.size == 1 else LEAST_RATIO
    return ratio if abs(ratio - 1) >= visible and rest <= RATIO_REST * abs(ratio - 1) else None


def _as_a_likelihood(finding: Finding, norm: float) -> Finding:
    """Return the finding, marked where it is a loss whose error would be within the limit in nats; `norm`: of the reference."""
    if not is_loss(finding.key):
        return finding
    return replace(finding, small_in_nats=finding.error * norm <= finding.allowed * SMALLEST_LIKELIHOOD)


def _changed_though_fixed(
    network: Network, reference: Tensors, candidate: Tensors, ordered: Mapping[str, Place]
) -> str:
    """Name the first tensor that is not trained, does not change in the reference, but does in the candidate; empty without any.

    No rounding explains such a change, however small: weight decay of a frozen tensor is less than what rounding may be.
    """
    untrained = {parameter.name for parameter in network.parameters if not parameter.trainable}
    fixed = (
        (key, place)
        for key, place in ordered.items()
        if state_step(key)
        and key.rpartition("/")[2] in untrained
        and np.array_equal(reference[key], reference[start_of(key)])
    )
    return next(
        (place.label for key, place in fixed if not np.array_equal(candidate[key], candidate[start_of(key)])), ""
    )


def _structural_difference(
    expected: Mapping[str, tuple[int, ...]], candidate: Tensors, ordered: Mapping[str, Place]
) -> str:
    """Name the first tensor that is missing, has another shape, or is not part of the network; empty when there is none."""
    for key, place in ordered.items():
        if key not in candidate:
            return sentences.missing(place.label)
        if np.shape(candidate[key]) != expected[key]:
            return sentences.wrong_shape(place.label, np.shape(candidate[key]), expected[key])
    return next((sentences.unknown(key) for key in candidate if key not in expected), "")
