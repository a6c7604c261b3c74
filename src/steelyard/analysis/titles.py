"""The parts of a contender's title and settings. Values may hold commas themselves, so the case tells where a part ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from steelyard_worker.case import Case

SEPARATOR = ", "


def parts(title: str, framework: str, case: Case) -> tuple[str, ...]:
    """Return the parts of a title: the framework, with its version if one was asked for, then what distinguishes the contender.

    `framework`: the shown name of the framework.
    """
    named = [f"{framework} {case.version}".strip(), framework]
    head = next((each for each in named if title == each or title.startswith(each + SEPARATOR)), "")
    known = [*_of_settings(case), *_of_case(case)]
    if not head:
        return tuple(_cut(title, known)) or (title,)
    return head, *_cut(title[len(head) :].removeprefix(SEPARATOR), known)


def settings(text: str, case: Case) -> tuple[str, ...]:
    """Return the settings that a text lists, each as its name with its value."""
    return tuple(_cut(text, _of_settings(case)))


def _of_settings(case: Case) -> list[str]:
    return [f"{name} {value}" for name, value in case.settings.knobs.items()]


def _of_case(case: Case) -> list[str]:
    """Return the values with commas that a title may have besides the settings."""
    return [case.settings.mode, case.strategy, f"learning rate {case.optimizer.schedule.summary}"]


def _cut(text: str, known: Collection[str]) -> Iterator[str]:
    """Yield the parts of a text: those that are known, the longest first, and otherwise what lies between two separators."""
    longest_first = sorted(filter(None, known), key=len, reverse=True)
    while text:
        whole = (each for each in longest_first if text == each or text.startswith(each + SEPARATOR))
        part = next(whole, text.partition(SEPARATOR)[0])
        yield part
        text = text[len(part) :].removeprefix(SEPARATOR)
