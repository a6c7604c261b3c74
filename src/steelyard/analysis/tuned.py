"""The search before the rounds: one sentence, and the times of all candidates, which are in no verdict."""

from steelyard.analysis.model import View
from steelyard.results.searched import CHOSEN, USUAL, Searched, Tried
from steelyard.wording.formatted import NO_VALUE


def rows(view: View) -> list[list[str]]:
    """Return settings, number of processes, least time per step in ms and outcome of every candidate, the best tried first."""
    found = view.searched
    if not found:
        return []
    tried = sorted(found.tried, key=lambda each: (-len(each.times_ns), min(each.times_ns, default=0.0)))
    return [_row(each) for each in tried]


def sentence(view: View) -> str:
    """Return a sentence on how much was tried and what was chosen; empty if nothing was searched."""
    found, search = view.searched, view.record.plan.search
    if not found or not search:
        return ""
    title = view.record.plan.frameworks[search.environment.partition("@")[0]].title
    tried = f"{len(found.tried)} settings of {title} were tried in {_minutes(found)} and {found.processes} processes"
    more = f"; there was no time for {found.left_out} more" if found.left_out else ""
    if not found.chosen:
        return f"{tried}{more}. None of them could be measured beside the usual settings."
    return f"{tried}{more}. The search chose {words(found.chosen)}, which the rounds then measured anew."


def words(tried: Tried) -> str:
    """Return settings in words, such as `mode compiled, layout channels-first`."""
    return ", ".join(f"{name} {value}" for name, value in tried.settings.items()) or "the usual settings"


def _minutes(found: Searched) -> str:
    return f"{found.seconds:.0f} s" if found.seconds < 120 else f"{found.seconds / 60:.0f} min"


def _row(tried: Tried) -> list[str]:
    time = f"{min(tried.times_ns) / 1e6:.3g}" if tried.times_ns else NO_VALUE
    outcome = {USUAL: "the usual settings", CHOSEN: "measured in the rounds"}.get(tried.outcome, tried.outcome)
    reason = f": {tried.reason}" if tried.reason else ""
    return [words(tried), str(len(tried.times_ns)), time, f"{outcome}{reason}"]
