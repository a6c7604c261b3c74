"""The sentences of certificates for users, for every possible result.

`by_rounding` is the judgement by rounding levels alone, before any further run.
"""

import math
from collections.abc import Sequence

import numpy as np

from steelyard.certificates.judgement import Finding, Judgement
from steelyard.certificates.method import UNIT_ROUNDOFFS
from steelyard.certificates.scales import SignChanges
from steelyard.certificates.tensors import AFTER_UPDATES, is_loss, state_step
from steelyard.statistics.sentences import listed
from steelyard_worker.case import Optimizer

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
    "inference output": (
        "Likely cause: the forward pass differs, or a layer does not behave as in inference, such as a batch norm that does not "
        "use its running statistics."
    ),
    "loss": (
        "The outputs match. Likely cause: the loss function differs, for example in its mean or sum, weights or smoothing."
    ),
    "gradient": (
        "The outputs and the loss match. Likely cause: this tensor is frozen or detached, or the backward pass goes wrong here."
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

FORMS = {
    "canonical": "",
    "epsilon-hat": "epsilon is added to the root of the uncorrected second moment",
    "rate-in-momentum": "each gradient keeps the learning rate of its own step in the momentum",
}

LOWER_PRECISION = (
    "Likely cause: a part of the network that computes in a lower precision, or a kernel of the framework that is wrong in "
    "this one."
)
WRONG_KERNEL = (
    "Likely cause: a kernel of the framework that is wrong in this precision. A lower precision is not: with every rounding as "
    "large as in bfloat16, this tensor would be off by about {error:.0e}."
)
CHANGING_RATES = (
    "The gradients match, and the learning rate changes from step to step. Likely cause: other rates, such as a schedule or its "
    "warm-up that is a step early or late. Or the optimizer differs, for example in weight decay, epsilon or bias correction."
)
EXPORTED = (
    " The network was exported by {exporter}, so the export may be the cause: an operator that it wrote with another epsilon, "
    "padding or rounding, or that {runtime} computes otherwise."
)
UNDECLARED_LIKELIHOOD = (
    "Or this loss is a negative log-likelihood, such as a cross-entropy, and network.py does not say so with likelihood=True: "
    "below one nat its errors are then measured in nats, and this one would be within the limit."
)
COMPUTED_IN_FLOAT32 = (
    "The difference is as small as rounding to float32: it looks as if one of them computes a part in float32."
)

SAME = "Same computation"
# The tensors of a stage in words, where a factor that they have in common is told once.
NAMES_OF_MANY = {"gradients": "gradients", "outputs": "outputs"}
FEW = 3
# Ratios are shown with two digits after the point.
HALF_A_DIGIT = 0.005
# Of the layers in TF32 that were tried, the most visible was off by 0.4 of its roundings (the table in docs/methods.md).
PRECISION_FACTOR = 10.0
# A larger factor is shown as a power of ten.
MANY = 1e7


def located(sentence: str, parts: Sequence[str], gaps: Sequence[str]) -> str:
    """Return the sentence of a certified candidate with what was compared, and what was not (`looked_at`)."""
    rest = sentence.removeprefix(SAME)
    missing = f" Not looked at: {listed(list(gaps))}." if gaps else ""
    return f"{SAME} as the double-precision reference in {listed(list(parts))}{rest}{missing}"


def in_context(found: Judgement, changing_rates: bool, exporter: str, runtime: str) -> str:
    """Return the sentence of a rejected candidate with causes that follow from what it is.

    `changing_rates`: of the optimizer; `exporter`: what exported the network, empty if nothing did; `runtime`: what runs it.
    """
    sentence = found.sentence
    if changing_rates:
        sentence = sentence.replace(CAUSES["state"], CHANGING_RATES)
    return sentence + (EXPORTED.format(exporter=exporter, runtime=runtime) if exporter and found.first else "")


def same(findings: Sequence[Finding]) -> str:
    """Return the sentence for a candidate whose errors are all within rounding."""
    worst = max(findings, key=lambda finding: finding.share)
    return (
        f"{SAME}: all {len(findings)} tensors match to rounding. "
        f"The largest deviation ({worst.label}) is at {_percent(worst.share)} of the limit."
    )


def same_in_float64(
    by_rounding: Judgement, exact: Judgement, relaxed: Judgement, precision: str, terms: int, signs: SignChanges | None
) -> str:
    """Return the sentence for a candidate whose float64 run matches, and whose errors in its own precision long sums explain.

    `relaxed`: the judgement that allows what sums of so many `terms` may lose. `signs`: in the first tensor beyond rounding,
    where they are most of its error and nothing before it differs.
    """
    cause = _of_signs(by_rounding, signs) if signs else f"is no more than sums of up to {terms:,} terms may lose"
    return (
        f"{SAME}: all {len(exact.findings)} tensors match, to {exact.largest:.1e} when computed in float64. "
        f"In {precision} {_largest_deviation(by_rounding)} {cause}{_would_have_passed(relaxed)}."
    )


def same_but_for_signs(
    by_rounding: Judgement, found: Judgement, precision: str, signs: SignChanges | None, framework: str
) -> str:
    """Return the sentence for a candidate without float64 that differs in what follows updates of an adaptive optimizer alone.

    `found` allows as many sign changes of updates as noise causes; `signs`: as of `same_in_float64`.
    """
    cause = _of_signs(by_rounding, signs) if signs else "is within what updates explain whose sign rounding decides"
    first = by_rounding.first
    updates = [each.allowed for each in found.findings if each.kind == "state" and first and each.stage == first.stage]
    resolution = float(np.median(updates)) if updates else 1.0
    detected = f"of less than {_percent(resolution)} of an update" if resolution < 1 else "in an update"
    return (
        f"{SAME}, as far as {precision} can show: all {len(found.findings)} tensors match. "
        f"{_capital(_largest_deviation(by_rounding))} {cause}. {framework} cannot compute this in float64, so a "
        f"mistake {detected} would not be detected here; the optimizer is judged by its step on the adversarial batch."
    )


def same_likelihood(
    by_rounding: Judgement, found: Judgement, precision: str, nats: float, steps: int, error: float, framework: str
) -> str:
    """Return the sentence for a candidate without float64 whose deviations rounding of its log-likelihood explains.

    `nats`: the loss; `steps`: of the recursion; `error`: its relative effect on gradients.
    """
    detected = found.resolution.get("gradients", 0.0)
    return (
        f"{SAME}, as far as {precision} can show: all {len(found.findings)} tensors match. "
        f"{_capital(_largest_deviation(by_rounding))} is no more than rounding of a log-likelihood of {_number(nats)} "
        f"nats over {steps} steps may cause, which changes gradients by about {error:.1e}. {framework} cannot "
        f"compute this in float64, so a bug that changes gradients by less than {detected:.1e} would not be detected."
    )


def same_on_another_draw(by_rounding: Judgement, found: Judgement) -> str:
    """Return the sentence for a candidate without float64 that matches on another random draw of weights and batch."""
    first = by_rounding.first.label if by_rounding.first else "one tensor"
    return (
        f"{SAME}: all {len(found.findings)} tensors match to rounding, on another random draw of "
        f"weights and batch. On the original one, {first} differed, most likely because a ReLU or a maximum was close to a tie. "
        f"A near-tie depends on the random draw; a real bug shows up on every draw."
    )


def different(findings: Sequence[Finding], opening: str = "Different computation") -> str:
    """Return the sentence for a candidate that does not match: the first tensor that differs, by how much, and likely causes."""
    return f"{opening}, {_first_difference(findings)}"


def different_in_float64(findings: Sequence[Finding]) -> str:
    """Return the sentence for a candidate whose float64 run does not match."""
    return different(findings, "Different computation even in float64")


def different_in_own_precision(findings: Sequence[Finding], precision: str) -> str:
    """Return the sentence for a candidate whose float64 run matches, with errors that long sums do not explain."""
    opening = f"Same computation in float64, but not in {precision}"
    return f"{opening}, {_first_difference(findings, _of_precision(findings))}"


def different_on_few_samples(found: Judgement, precision: str) -> str:
    """Return the sentence for a candidate that long sums may explain, but that also differs on a small batch without them."""
    if not found.findings:
        return found.sentence
    opening = f"Same computation in float64, but not in {precision}, as a batch of a few repeated samples shows"
    return f"{opening}, {_first_difference(found.findings, _of_precision(found.findings))}"


def different_on_few_samples_only(found: Judgement) -> str:
    """Return the sentence for a candidate that is within rounding on its own batch, but not on a small one."""
    if not found.findings:
        return found.sentence
    first = found.first
    precision = first is not None and first.kind != "adversarial" and _may_be_precision(first)
    difference = _first_difference(found.findings, LOWER_PRECISION if precision else "")
    return f"Different computation, as a batch of a few repeated samples shows, where rounding hides less, {difference}"


def same_on_few_samples(found: Judgement) -> str:
    """Return what is added for a candidate that also matches on a small batch without long sums."""
    worst = max(found.findings, key=lambda finding: finding.share)
    share = _percent(worst.share)
    return f"On a batch of a few repeated samples, the largest deviation ({worst.label}) is at {share} of the limit."


def reference_difference(findings: Sequence[Finding], single: bool) -> str:
    """Return how two references differ; `single`: by no more than rounding to float32."""
    return f"The first difference is in {_described(findings, COMPUTED_IN_FLOAT32 if single else '')}"


def references_disagree(difference: str, titles: Sequence[str]) -> str:
    """Return the sentence for references of which no two match; `titles` are their names."""
    return f"Nothing can be certified, because {listed(list(titles))} disagree in float64, so one of them is wrong. {difference}"


def odd_reference(difference: str, odd: str, titles: Sequence[str]) -> str:
    """Return the sentence for a reference that differs from two others that match; `odd` and `titles` are their names."""
    return f"{odd} disagrees in float64 with {listed(list(titles))}, which agree, so it is not used as a reference. {difference}"


def further_run_failed(by_rounding: Judgement, message: str) -> str:
    """Return the sentence for a candidate that could not be examined further; `message` is the error of the failed process."""
    if by_rounding.passed:
        return (
            "Not decided: the candidate is within rounding on its own batch, but a run on a few repeated samples failed: "
            f"{message}"
        )
    return f"{by_rounding.sentence} A further run that could have shown whether this is only rounding failed: {message}"


def first_inner_tensor(label: str, error: float, before: str) -> str:
    """Return the sentence that names the first inner tensor that differs; `before`: the last one that matches, if any."""
    size = f"relative error {error:.1e}" if math.isfinite(error) else "it has another size, or undefined values"
    matching = f"; {before}, before it, matches" if before else ""
    return f" The first inner tensor that differs is {label}: {size}{matching}."


def same_inner_tensors(names: Sequence[str]) -> str:
    """Return the sentence for inner tensors that all match; empty where there are none."""
    if not names:
        return ""
    if len(names) == 1:
        return f' The inner tensor "{names[0]}" matches.'
    return f' All {len(names)} inner tensors match, from "{names[0]}" to "{names[-1]}".'


def missing_inner_tensors(names: Sequence[str]) -> str:
    """Return the sentence for inner tensors that network.py lists and not both implementations give."""
    plural = "s" if len(names) > 1 else ""
    return (
        f" Not compared, because an implementation does not pass {'them' if plural else 'it'} to probe(): "
        f"the inner tensor{plural} {listed([_quoted(name) for name in names])}."
    )


def no_inner_tensors(reason: str) -> str:
    """Return the sentence for a process that should have saved inner tensors and failed."""
    return f" Inner tensors could not be compared: {reason}"


def changed_though_fixed(label: str) -> str:
    """Return the sentence for a tensor that is not trained, but changes."""
    return (
        f"Different computation: {label} is not what it was before the first step, although it is not trained. Likely cause: an "
        "optimizer that also updates or decays frozen tensors, or batch norm that updates its statistics in a frozen body."
    )


def changed_meanwhile(path: str) -> str:
    """Return the sentence for a file that the processes of one certificate imported with different contents."""
    return (
        f"Nothing can be certified, because {path}, which the implementation imports, was changed while this was certified. "
        f"Certify again."
    )


def missing(label: str) -> str:
    """Return the sentence for a tensor that a process did not save."""
    return f"{_capital(label)} is missing. The implementation must provide every tensor that network.py lists."


def wrong_shape(label: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> str:
    """Return the sentence for a tensor of another shape."""
    return f"{_capital(label)} has shape {shape}, expected {expected}."


def unknown(key: str) -> str:
    """Return the sentence for a saved tensor that the network does not have."""
    return f'The implementation provides "{key}", which network.py does not list.'


def optimizer_form(rule: Optimizer) -> str:
    """Return how the reference's update rule differs from the canonical formula; empty where it does not."""
    differences = [FORMS[rule.form]] if FORMS[rule.form] else []
    if rule.correction != "float64":
        differences.append(f"bias correction is computed in {rule.correction}")
    return "As in the framework's own optimizer, " + " and ".join(differences) + "." if differences else ""


def _of_signs(by_rounding: Judgement, signs: SignChanges) -> str:
    first = by_rounding.first.label if by_rounding.first else "one tensor"
    return (
        f"follows from updates of gradients near zero, of which the optimizer makes full steps, and whose sign rounding decides: "
        f"in {first}, {signs.count:,} of {signs.elements:,} elements moved the other way"
    )


def _first_difference(findings: Sequence[Finding], cause: str = "") -> str:
    return f"first seen in {_described(findings, cause)}"


def _described(findings: Sequence[Finding], cause: str = "") -> str:
    beyond = [finding for finding in findings if not finding.passed]
    first, later = beyond[0], len(beyond) - 1
    more = f" {later:,} later tensor{' differs' if later == 1 else 's differ'} too." if later else ""
    causes = [cause or CAUSES[first.kind], *([UNDECLARED_LIKELIHOOD] if first.small_in_nats else [])]
    return f"{first.label}: {_size(first)}.{_ratio(first, findings)}{more} {' '.join(causes)}"


def _ratio(first: Finding, findings: Sequence[Finding]) -> str:
    """Return how large a tensor is where a factor explains its error, and how many tensors of its stage are off by the same."""
    if first.ratio is None:
        return ""
    size = "zero" if abs(first.ratio) < HALF_A_DIGIT else f"{first.ratio:,.2f} times the reference's"
    of_stage = [
        each for each in findings if (each.stage, each.kind) == (first.stage, first.kind) and not is_loss(each.key)
    ]
    alike = [each for each in of_stage if each.ratio is not None and _same_ratio(each.ratio, first.ratio)]
    name = NAMES_OF_MANY.get(first.stage) or ("updates" if state_step(first.key) else "")
    if len(alike) < FEW or not name:
        return f" It is {size}."
    which = "All" if len(alike) == len(of_stage) else f"{len(alike):,} of {len(of_stage):,}"
    return f" {which} {name} are {size}."


def _same_ratio(one: float, other: float) -> bool:
    return abs(one - other) <= max(HALF_A_DIGIT, 0.01 * abs(other))


def _of_precision(findings: Sequence[Finding]) -> str:
    """Return the likely cause where a candidate matches in float64, and not in its own precision."""
    first = next(finding for finding in findings if not finding.passed)
    return LOWER_PRECISION if _may_be_precision(first) else WRONG_KERNEL.format(error=_error_in_bfloat16(first))


def _may_be_precision(first: Finding) -> bool:
    """Return whether an error is no larger than a few times what roundings to bfloat16 cause in the tensor.

    Updates may change their sign, so nothing can be said of what follows them.
    """
    return first.kind in AFTER_UPDATES or first.error <= PRECISION_FACTOR * _error_in_bfloat16(first)


def _error_in_bfloat16(first: Finding) -> float:
    return first.level / UNIT_ROUNDOFFS["float32"] * UNIT_ROUNDOFFS["bfloat16"]


def _would_have_passed(relaxed: Judgement) -> str:
    """Return which errors of outputs and gradients the judgement would have let pass."""
    known = {"outputs": "an output", "gradients": "a gradient"}
    found = [
        f"{percentage(relaxed.resolution[stage])} of {what}"
        for stage, what in known.items()
        if stage in relaxed.resolution
    ]
    return f"; errors of up to {listed(found)} would have passed here" if found else ""


def percentage(error: float) -> str:
    """Return a relative error as a percentage with two digits."""
    return f"{100 * error:,.0f} %" if error >= 0.1 else f"{100 * error:.2g} %"


def _quoted(name: str) -> str:
    return f'"{name}"'


def _size(finding: Finding) -> str:
    if not math.isfinite(finding.error):
        return "it has infinite or undefined (NaN) values"
    error = f"error {finding.error:.1e} nats" if finding.in_nats else f"relative error {finding.error:.1e}"
    return f"{error}, {_number(finding.share)} times the limit for rounding"


def _largest_deviation(by_rounding: Judgement) -> str:
    """Return the largest deviation by name, and the first one beyond rounding where that is another tensor."""
    worst, first = by_rounding.worst, by_rounding.first
    if not worst or not first:
        return "the largest deviation"
    start = "" if worst.label == first.label else f"; the first one is {first.label}"
    return f"the largest deviation ({worst.label}{start})"


def _percent(share: float) -> str:
    return "less than 1 %" if share < 0.01 else f"{100 * share:.0f} %"


def _number(value: float) -> str:
    if value >= MANY:
        return f"{value:.0e}"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _capital(text: str) -> str:
    """Start with a capital letter, but leave names of tensors unchanged."""
    return text[:1].upper() + text[1:] if text.startswith("the ") else text
