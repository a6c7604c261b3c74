"""The sentences of certificates for users, for every possible result.

`by_rounding` is the judgement by rounding levels alone, before any further run.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.certificates import causes
from steelyard.certificates.judgement import HALF_A_DIGIT, Finding, Judgement, first_beyond
from steelyard.certificates.scales import SignChanges
from steelyard.certificates.tensors import is_loss, state_step
from steelyard.statistics.sentences import listed
from steelyard_worker.case import Optimizer

FORMS = {
    "canonical": "",
    "epsilon-hat": "epsilon is added to the root of the uncorrected second moment",
    "rate-in-momentum": "each gradient keeps the learning rate of its own step in the momentum",
}

SAME = "Same computation"
# The tensors of a stage in words, where a factor that they have in common is told once.
NAMES_OF_MANY = {"gradients": "gradients", "outputs": "outputs"}
FEW = 3
# A larger factor is shown as a power of ten.
MANY = 1e7
# Of two references, the one whose difference from a third is this many times that of the other is called wrong. Right ones are
# nearer to each other, also where a framework computes a function in less precision.
CLEARLY_FARTHER = 100.0


def located(sentence: str, parts: Sequence[str], gaps: Sequence[str]) -> str:
    """Return the sentence of a certified candidate with what was compared, and what was not (`looked_at`)."""
    rest = sentence.removeprefix(SAME)
    missing = f" Not looked at: {listed(list(gaps))}." if gaps else ""
    return f"{SAME} as the double-precision reference in {listed(list(parts))}{rest}{missing}"


def in_context(found: Judgement, rule: Optimizer, exporter: str, runtime: str) -> str:
    """Return the sentence of a rejected candidate with causes that follow from what it is.

    `rule`: its optimizer; `exporter`: what exported the network, empty if nothing did; `runtime`: what runs it.
    """
    sentence = causes.of_rule(found.sentence, rule)
    return f"{sentence} {causes.of_export(exporter, runtime)}" if exporter and found.first else sentence


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
    return f"{opening}, {_first_difference(findings, causes.of_precision(findings))}"


def different_on_few_samples(found: Judgement, precision: str) -> str:
    """Return the sentence for a candidate that long sums may explain, but that also differs on a small batch without them."""
    if not found.findings:
        return found.sentence
    opening = f"Same computation in float64, but not in {precision}, as a batch of a few repeated samples shows"
    return f"{opening}, {_first_difference(found.findings, causes.of_precision(found.findings))}"


def different_on_few_samples_only(found: Judgement) -> str:
    """Return the sentence for a candidate that is within rounding on its own batch, but not on a small one."""
    if not found.findings:
        return found.sentence
    difference = _first_difference(found.findings, causes.on_few_samples(found.first))
    return f"Different computation, as a batch of a few repeated samples shows, where rounding hides less, {difference}"


def same_on_few_samples(found: Judgement) -> str:
    """Return what is added for a candidate that also matches on a small batch without long sums."""
    worst = max(found.findings, key=lambda finding: finding.share)
    share = _percent(worst.share)
    return f"On a batch of a few repeated samples, the largest deviation ({worst.label}) is at {share} of the limit."


def reference_difference(findings: Sequence[Finding], single: bool) -> str:
    """Return how two references differ; `single`: by no more than rounding to float32."""
    return f"The first difference is in {_described(findings, causes.COMPUTED_IN_FLOAT32 if single else '')}"


def references_disagree(difference: str, titles: Sequence[str]) -> str:
    """Return the sentence for references of which no two match; `titles` are their names."""
    return f"Nothing can be certified, because {listed(list(titles))} disagree in float64, so one of them is wrong. {difference}"


def odd_reference(difference: str, odd: str, titles: Sequence[str]) -> str:
    """Return the sentence for a reference that differs from two others that match; `odd` and `titles` are their names."""
    return f"{odd} disagrees in float64 with {listed(list(titles))}, which agree, so it is not used as a reference. {difference}"


def third_reference(third: str, shares: Mapping[str, float]) -> str:
    """Return what a third reference says of two that disagree, where it matches neither.

    `shares`: how far it is from either by title, in limits; infinite where they cannot be compared by numbers.
    """
    sizes = listed([_apart(title, share) for title, share in shares.items()])
    (_, least), (odd, most) = sorted(shares.items(), key=lambda pair: pair[1])
    likely = f" So {odd} is probably wrong." if math.isfinite(least) and most >= CLEARLY_FARTHER * least else ""
    return f"{third}, which was computed as a third, differs from both: {sizes}.{likely}"


def _apart(title: str, share: float) -> str:
    if not math.isfinite(share):
        return f"without bound from {title} (other tensors, or infinite or undefined (NaN) values)"
    return f"by {share:,.{1 if share < 100 else 0}f} times the limit from {title}"


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
    first, others = first_beyond(findings), sum(not finding.passed for finding in findings) - 1
    more = f" {others:,} other tensor{' differs' if others == 1 else 's differ'} too." if others else ""
    return f"{first.label}: {_size(first)}.{_ratio(first, findings)}{more} {causes.likely(first, cause)}"


def _ratio(first: Finding, findings: Sequence[Finding]) -> str:
    """Return how large a tensor is where a factor explains its error, and how many tensors of its stage are off by the same."""
    if first.ratio is None:
        return ""
    size = "zero" if first.is_zero else f"{first.ratio:,.2f} times the reference's"
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
