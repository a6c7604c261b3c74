"""Which cause a difference most likely has, by the first tensor that differs and the size of its error."""

from collections.abc import Sequence

from steelyard.certificates.judgement import Finding, first_beyond
from steelyard.certificates.method import UNIT_ROUNDOFFS
from steelyard.certificates.tensors import AFTER_UPDATES
from steelyard_worker.case import Optimizer

# Of the layers in TF32 that were tried, the most visible was off by 0.4 of its roundings (the table in docs/methods.md).
PRECISION_FACTOR = 10.0

# The usual causes of a deviation, by the kind of the first tensor that differs (`tensors.Place`).
CAUSES = {
    "initial state": (
        "Likely cause: the weights are loaded differently, for example with axes or gates in another order."
    ),
    "first statistics": (
        "Likely cause: the forward pass differs in this layer or just before it, for example in padding, stride, or the epsilon "
        "or momentum of a batch norm."
    ),
    "output": "Likely cause: the forward pass differs; compare every layer with the workload's network.py.",
    "evaluation": (
        "Outputs in training match. Likely cause: the epsilon of a batch norm or layer norm, which matters with the weights used "
        "here, a layer that does not behave as in inference, or a kernel of lower precision."
    ),
    "inference output": (
        "Likely cause: the forward pass differs, or a layer does not behave as in inference, such as a batch norm that does not "
        "use its running statistics."
    ),
    "loss": (
        "The outputs match. Likely cause: the loss function differs, for example in its mean or sum, weights or smoothing."
    ),
    "gradient": (
        "The outputs and the loss match. Likely cause: the backward pass goes wrong here, or in a layer that comes after it."
    ),
    "later loss": (
        "Everything before this step matches. Likely cause: a trained tensor that network.py does not list, or batches in "
        "another order."
    ),
    "state": (
        "The gradients match. Likely cause: the optimizer differs, for example in weight decay, epsilon or bias correction."
    ),
    "inference": (
        "Training matches. Likely cause: a layer that behaves differently in inference, such as batch norm or dropout."
    ),
    "adversarial": (
        "Usual batches match. Likely cause: a weight that is loaded into the wrong place and starts as zero or one everywhere, "
        "such as the gates of a bias in another order; or what only large activations, extreme lengths or repeated words show, "
        "such as a clip, a mask or a missing case of the loss; or weight decay or the clipping of gradients."
    ),
    "isolated": (
        "Everything else matches. Likely cause: a layer that computes in a lower precision, whose effect is usually hidden by "
        "the rounding of the layers before it."
    ),
}

NO_GRADIENT = "The outputs and the loss match. Likely cause: this tensor is frozen or detached."
LOWER_PRECISION = (
    "Likely cause: a part of the network that computes in a lower precision, or a kernel of the framework that is wrong in "
    "this one."
)
WRONG_KERNEL = (
    "Likely cause: a kernel of the framework that is wrong in this precision. A lower precision is not: with every rounding as "
    "large as in bfloat16, this tensor would be off by about {error:.0e}."
)
GROUPS = (
    "The gradients match, and groups of tensors have a learning rate or a weight decay of their own. Likely cause: a group that "
    "is ignored, or that has other tensors. Or the optimizer differs, for example in weight decay, epsilon or bias correction."
)
CHANGING_RATES = (
    "The gradients match, and the learning rate changes from step to step. Likely cause: other rates, such as a schedule or its "
    "warm-up that is a step early or late. Or the optimizer differs, for example in weight decay, epsilon or bias correction."
)
EXPORTED = (
    "The network was exported by {exporter}, so the export may be the cause: an operator that it wrote with another epsilon, "
    "padding or rounding, or that {runtime} computes otherwise."
)
UNDECLARED_LIKELIHOOD = (
    "Or this loss is a negative log-likelihood, such as a cross-entropy, and network.py does not say so with likelihood=True: "
    "below one nat its errors are then measured in nats, and this one would be within the limit."
)
COMPUTED_IN_FLOAT32 = (
    "The difference is as small as rounding to float32: it looks as if one of them computes a part in float32."
)


def likely(first: Finding, cause: str = "") -> str:
    """Return the causes that a difference may have whose first tensor this is; `cause`: instead of the usual one of its kind."""
    usual = NO_GRADIENT if first.kind == "gradient" and first.is_zero else CAUSES[first.kind]
    causes = [cause or usual, *([UNDECLARED_LIKELIHOOD] if first.small_in_nats else [])]
    return " ".join(causes)


def of_rule(sentence: str, rule: Optimizer) -> str:
    """Return a sentence with the causes that follow from what the optimizer is: it has groups of tensors, or a changing rate."""
    if not rule.groups and not rule.schedule.changes:
        return sentence
    return sentence.replace(CAUSES["state"], GROUPS if rule.groups else CHANGING_RATES)


def of_export(exporter: str, runtime: str) -> str:
    """Return that the export may be the cause: by `exporter`, for `runtime`."""
    return EXPORTED.format(exporter=exporter, runtime=runtime)


def of_precision(findings: Sequence[Finding]) -> str:
    """Return the likely cause where a candidate matches in float64, and not in its own precision."""
    first = first_beyond(findings)
    return LOWER_PRECISION if _may_be_precision(first) else WRONG_KERNEL.format(error=_error_in_bfloat16(first))


def on_few_samples(first: Finding | None) -> str:
    """Return the likely cause where a candidate only differs on a few samples; empty where it is the usual one."""
    precision = first is not None and first.kind != "adversarial" and _may_be_precision(first)
    return LOWER_PRECISION if precision else ""


def _may_be_precision(first: Finding) -> bool:
    """Return whether an error is no larger than a few times what roundings to bfloat16 cause in the tensor.

    Updates may change their sign, so nothing can be said of what follows them.
    """
    return first.kind in AFTER_UPDATES or first.error <= PRECISION_FACTOR * _error_in_bfloat16(first)


def _error_in_bfloat16(first: Finding) -> float:
    return first.level / UNIT_ROUNDOFFS["float32"] * UNIT_ROUNDOFFS["bfloat16"]
