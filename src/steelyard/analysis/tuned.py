"""The search before the rounds: one sentence, and a table of times, which are in no verdict."""

from dataclasses import dataclass

from steelyard.analysis.model import View
from steelyard.results.searched import CHOSEN, USUAL, Searched, Tried
from steelyard.wording.formatted import NO_VALUE

CAPTION = (
    "Every candidate ran once, the faster half again, and so on. These times chose what the rounds measured. They are in no "
    "verdict: the best of many is partly luck, and a candidate that ran once may have had a bad moment."
)
HEADINGS = ["settings", "processes", "least ms per step", "outcome"]


@dataclass(frozen=True)
class Section:
    """The section of the page about a search."""

    sentence: str
    caption: str
    headings: list[str]
    rows: list[list[str]]


def section(view: View) -> Section | None:
    """Return the section of a run; None where nothing was searched."""
    found, search = view.searched, view.record.plan.search
    if not found or not search:
        return None
    rows = sorted(found.tried, key=lambda each: (-len(each.times_ns), min(each.times_ns, default=0.0)))
    return Section(sentence(view), CAPTION, HEADINGS, [_row(each) for each in rows])


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
