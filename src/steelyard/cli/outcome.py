"""The common rule for the exit codes of commands that measure, certify or explain contenders."""

from collections.abc import Collection

from steelyard.cli.main import EXIT_LEFT_OUT, EXIT_NO_RESULT
from steelyard.report.model import Contender, View

NO_RESULT = "Every process of this run failed, so there is no result. The reasons are in the table and on the page."
REASONS = "because a process failed, did not compute what was certified, has no environment or no certificate"


def code(with_result: int, left_out: int) -> int:
    """Return the exit code, from the numbers of contenders with and without the requested result."""
    if not with_result:
        return EXIT_NO_RESULT
    return EXIT_LEFT_OUT if left_out else 0


def left_out(found: View) -> int:
    """Return how many contenders of a run were to be measured and are in no verdict."""
    measured = sum(_is_left_out(each) for comparison in found.comparisons for each in comparison.contenders)
    return measured + len(found.record.plan.variants) - len(found.record.available.variants)


def of_run(found: View) -> tuple[int, str]:
    """Return the exit code of a run that has ended, and a sentence on what is missing; empty if nothing is."""
    if found.record.state == "failed":
        return code(0, 0), NO_RESULT
    count = left_out(found)
    who = "1 contender is" if count == 1 else f"{count} contenders are"
    sentence = f"{who} in no verdict, {REASONS}. The reason is in the table." if count else ""
    return code(1, count), sentence


def of_explanation(found: View, wanted: Collection[str]) -> int:
    """Return the exit code of an explanation of the cases with these ids."""
    contenders = [each for comparison in found.comparisons for each in comparison.contenders if each.case.id in wanted]
    explained = sum(bool(each.profile) for each in contenders)
    return code(explained, len(contenders) - explained)


def _is_left_out(contender: Contender) -> bool:
    return bool(contender.failure) or contender.proof.state == "rejected"
