"""The result of a comparison: one finding for each tensor, and the judgement over all of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Ratios are shown with two digits after the point.
HALF_A_DIGIT = 0.005


@dataclass(frozen=True)
class Finding:
    """One tensor: its relative error beyond the `unavoidable` one, its rounding level, and the error that is allowed.

    `key` is the name in the dump, `label` the name in words; `stage` and `kind` as in `tensors.Place`. `in_nats`: the errors of
    this loss are in nats (`scales.Scale`). `small_in_nats`: they are not, because the network does not declare its loss as a
    likelihood, and in nats the error would be within the limit. `ratio`: of the tensor to the reference's, least squares, where
    that explains most of an error beyond the limit (of a state, of its change since the start); else None.
    """

    key: str
    label: str
    stage: str
    kind: str
    error: float
    level: float
    allowed: float
    unavoidable: float = 0.0
    in_nats: bool = False
    small_in_nats: bool = False
    ratio: float | None = None

    @property
    def is_zero(self) -> bool:
        """Whether the tensor is zero where the reference's is not."""
        return self.ratio is not None and abs(self.ratio) < HALF_A_DIGIT

    @property
    def units(self) -> float:
        """The error in rounding levels."""
        return self.error / self.level

    @property
    def share(self) -> float:
        """The error as a share of the allowed error; infinite for a NaN."""
        share = self.error / self.allowed
        return math.inf if math.isnan(share) else share

    @property
    def passed(self) -> bool:
        """Within the limit."""
        return self.share <= 1


@dataclass(frozen=True)
class Judgement:
    """The findings for all tensors in causal order, and their result in words (`sentence`).

    There are no findings where names or shapes differ. `agreement`: the largest relative difference between the two float64
    references; None with one reference. `deviation`: the largest by rounding alone, which the sentence names, where more is
    allowed. `few`: the findings on the small batch, where the candidate had to match there, too.
    """

    passed: bool
    sentence: str
    findings: tuple[Finding, ...] = ()
    agreement: float | None = None
    deviation: Finding | None = None
    few: tuple[Finding, ...] = ()

    @property
    def first(self) -> Finding | None:
        """The first tensor that exceeds its limit (`first_beyond`), if one does."""
        return None if all(finding.passed for finding in self.findings) else first_beyond(self.findings)

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
        """For each stage, the median relative error that would still pass; larger errors are detected."""
        stages: dict[str, list[float]] = {}
        for finding in self.findings:
            stages.setdefault(finding.stage, []).append(finding.allowed + finding.unavoidable)
        return {stage: float(np.median(allowed)) for stage, allowed in stages.items()}


def first_beyond(findings: Sequence[Finding]) -> Finding:
    """Return the first tensor in the order of comparison that exceeds its limit; at least one must.

    An inference before training does not point to a layer. If its tensor would be the first, and the adversarial batch shows the
    mistake as well, return the first tensor of that batch, whose statistics and updates belong to layers.
    """
    beyond = [finding for finding in findings if not finding.passed]
    if beyond[0].kind == "evaluation":
        return next((finding for finding in beyond if finding.kind == "adversarial"), beyond[0])
    return beyond[0]
