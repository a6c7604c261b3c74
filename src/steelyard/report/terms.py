"""The explained terms of a page. The text of a term opens where the term is used, and is in the glossary at the end."""

import html
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from markupsafe import Markup

from steelyard.report.columns import ranked_by
from steelyard.results.quantities import Quantity
from steelyard_worker.case import TRAINING

TERMS = {
    "cached batch": "Samples of random data that stay on the device and are used again and again, in three orders that take "
    "turns: the framework alone, without reading input.",
    "certificate": "The record that a contender computes the same function as the reference. Of a training, parameters, "
    "outputs, loss, every gradient and the following steps were compared; of an inference, parameters and outputs.",
    "contender": "A framework in one version, mode and set of settings: one row of a table.",
    "disturbed": "While the round ran, other programs used the processor, the hypervisor took time away, or the clock rate "
    "changed.",
    "input pipeline": "The way in which a framework reads, shuffles and batches its data.",
    "interval": "The range in brackets. The procedure that computes it misses the true value in at most 5 of 100 measurements.",
    "not enough rounds": "The ends of the interval differ by more than a factor of 3, so it says nothing of use yet.",
    "not told apart": "The difference is shown to be less than the limit beside it. On a noisy machine this is more than 2 %, so "
    "the difference may matter.",
    "practically the same": "The difference is shown to be too small to matter: less than 2 %, or another limit that you chose.",
    "protocol": "How many rounds are run, and how many steps or batches of each process warm up and count.",
    "retired": "The project has no new releases and gets no corrections. Old networks may still need it.",
    "round": "One trial of every contender that is not decided yet, in random order. Where they can, they compute in turns, so "
    "that all meet the same machine.",
    "steady state": "The part of a process in which nothing compiles any more and the times no longer change.",
    "too close to call": "Neither of the two is shown to be better, or to be within the margin of the other.",
    "trial": "One new process that runs one contender once. The intervals are computed from trials, not from single "
    "steps or batches.",
    "warm-up": "What a process computes before counting begins. It lasts until the process is in a steady state.",
}


@dataclass(frozen=True)
class Glossary:
    """Terms with their texts, in alphabetical order."""

    texts: Mapping[str, str]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        names = "|".join(map(re.escape, sorted(self.texts, key=len, reverse=True)))
        return re.compile(
            rf"`(?P<code>[^`]+)`|(?P<span>\[[^\[\]]*\])|(?P<open>\(?)\b(?<!-)(?P<term>{names})(?P<s>s?)\b", re.I
        )

    def marked(self, text: str) -> Markup:
        """Return a text as HTML, all of it escaped: terms are buttons where they first appear, intervals and `code` marked."""
        seen = set[str]()

        def mark(found: re.Match[str]) -> str:
            if found["code"]:
                return f"<code>{found['code']}</code>"
            if found["span"]:
                return f'<span class="span">{found["span"]}</span>'
            name = found["term"].lower()
            if name in seen:
                return found[0]
            seen.add(name)
            button = self.button(name, found["term"] + found["s"])
            # A browser would break the line between the bracket and the button.
            return f'<span class="joined">({button}</span>' if found["open"] else button

        return Markup(self._pattern.sub(mark, html.escape(text)))

    def button(self, name: str, shown: str = "") -> Markup:
        """Return a button that opens the text of a term. A pointer that rests on the button shows the text, too."""
        attributes = f'type="button" class="term" popovertarget="{anchor(name)}"'
        return Markup(
            f'<button {attributes} title="{html.escape(self.texts[name])}">{shown or html.escape(name)}</button>'
        )


def glossary(
    quantity: Quantity, tasks: Collection[str] = (TRAINING,), more: Mapping[str, str] = MappingProxyType({})
) -> Glossary:
    """Return the terms of a page that is ranked by a quantity: the general ones and the headings of its tasks' columns.

    `more`: explanations of the columns of further tables, by heading.
    """
    shown = [column for task in sorted(tasks) for column in ranked_by(quantity, task)]
    columns = {column.heading: column.help for column in shown}
    return Glossary(dict(sorted({**TERMS, **columns, **more}.items())))


def anchor(name: str) -> str:
    """Return the id of the element that holds the text of a term."""
    return "term-" + re.sub(r"\W+", "-", name)
