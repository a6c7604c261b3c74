"""The private words in the record of a run: names of hosts, nodes and users, and paths; and texts without them."""

from __future__ import annotations

import getpass
import json
import platform
import re
import shlex
from contextlib import suppress
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from steelyard.report.privacy import HOMES
from steelyard.results import addresses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.results.record import RunRecord

# Names that say nothing about anybody.
COMMON = {
    "root",
    "user",
    "users",
    "localhost",
    "local",
    "nobody",
    "home",
    "admin",
    "debian",
    "ubuntu",
    "runner",
    "linux",
    "host",
    "path",
    "hidden",
    "node",
    "address",
}
# A path that begins at the root, at a home folder, or at the present folder, and not the rest of a word, an address or a ratio.
PATH = re.compile(
    r"(?<![\w/:.)\]}*])(?:~[\w.-]*|\.{1,2})?/[^\s\"'<>|;,()\[\]{}]*[^\s\"'<>|;,()\[\]{}.:]|\b[A-Za-z]:\\[^\s\"'<>|]+"
)
AFTER_COLON = re.compile(r"(?<=\w:)/(?!/)[^\s\"'<>|;,()\[\]{}]*[^\s\"'<>|;,()\[\]{}.:]")
REST = r"(?:/[^\s\"'<>|;,()\[\]{}]*)?"
SPACED = re.compile(r'"(/[^"\\]* [^"\\]*)"')
URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>]+", re.IGNORECASE)
OPEN_SITE = re.compile(r"https?://[\w.-]+\.(?:org|com|net|io|edu|gov|ai|dev)(?=[/\s:]|$)", re.IGNORECASE)
PRIVATE_ADDRESS = re.compile(r"(?<![\d.])(?:10|172\.(?:1[6-9]|2\d|3[01])|192\.168)(?:\.\d{1,3}){2,3}(?![\d.])")
PLACE, ADDRESS = "PATH", "ADDRESS"


class Hiding:
    """Hides what is private. Equal paths and names become equal words, so that what refers to each other still does.

    `words`: private word -> what stands for it; longer ones are replaced first. `spaced`: known paths with blanks, of which
    nobody could tell the end inside a sentence.
    """

    def __init__(self, words: dict[str, str], spaced: Iterable[str] = ()) -> None:
        known = "|".join(re.escape(path) for path in sorted(spaced, key=len, reverse=True))
        self._spaced = re.compile(rf"(?:{known}){REST}") if known else None
        self.words = {word: words[word] for word in sorted(words, key=lambda word: (-len(word), word))}
        self._numbers: dict[str, int] = {}
        spelled = "|".join(map(re.escape, self.words))
        self._any = re.compile(rf"(?<![A-Za-z0-9])(?:{spelled})(?![A-Za-z0-9])", re.IGNORECASE) if spelled else None
        self._lower = {word.lower(): other for word, other in self.words.items()}

    def text(self, text: str) -> str:
        """Return a text without private words, paths and addresses of other places than public sites."""
        if "/" in text or "\\" in text:
            text = self._without_paths(text)
        return self.name(PRIVATE_ADDRESS.sub(ADDRESS, text))

    def name(self, name: str) -> str:
        """Return the name of a file without private words."""
        return self._any.sub(lambda found: self._lower[found[0].lower()], name) if self._any else name

    def is_in(self, text: str) -> bool:
        """Report whether a private word is in a text."""
        return bool(self._any and self._any.search(text))

    def value(self, value: Any) -> Any:
        """Return a value of JSON with all its texts and names hidden."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {self.text(name): self.value(each) for name, each in value.items()}
        return value

    def _without_paths(self, text: str) -> str:
        if text.startswith(("/", "~/", "\\\\")):  # a path as a whole may have blanks
            return self._place(text)
        parts, end = [], 0
        for found in URL.finditer(text):
            parts += [self._paths(text[end : found.start()]), found[0] if OPEN_SITE.match(found[0]) else ADDRESS]
            end = found.end()
        return "".join([*parts, self._paths(text[end:])])

    def _paths(self, text: str) -> str:
        for pattern in filter(None, (self._spaced, PATH, AFTER_COLON, HOMES)):
            text = pattern.sub(lambda found: self._place(found[0]), text)
        return text

    def _place(self, path: str) -> str:
        return f"{PLACE}-{self._numbers.setdefault(path, len(self._numbers) + 1)}"


def words(known: RunRecord, texts: Iterable[str], also: Iterable[str] = ()) -> tuple[dict[str, str], list[str]]:
    """Return what is private in a record, as word -> what stands for it, and the private words that cannot be hidden.

    `texts`: all texts of the record, in which homes name users; `also`: what somebody named. A word that is also the name of a
    network or a framework of the run, or a field of a record, cannot be hidden, because the record would not be readable.
    """
    users = {_user(), *(home for text in texts for found in HOMES.finditer(text) if (home := _last(found[0])))}
    hosts = {platform.node(), platform.node().partition(".")[0]}
    nodes = {node: f"node-{number}" for number, node in enumerate(known.nodes, 1)}
    found = {**dict.fromkeys(also, "HIDDEN"), **dict.fromkeys(hosts, "HOST"), **dict.fromkeys(users, "USER"), **nodes}
    needed = _vocabulary(known)
    private = {word: other for word, other in found.items() if len(word) > 1 and word.lower() not in COMMON}
    return (
        {word: other for word, other in private.items() if word.lower() not in needed},
        sorted(word for word in private if word.lower() in needed),
    )


def spaced_paths(texts: Iterable[str]) -> set[str]:
    """Return the paths with blanks that are whole values in texts of JSON, and the folders above them that have blanks."""
    found = {PurePosixPath(path) for text in texts for path in SPACED.findall(text)}
    return {str(each) for path in found for each in (path, *path.parents) if " " in str(each)}


def command(known: RunRecord) -> str:
    """Return the command of a run without values that are files, folders, interpreters or addresses."""
    try:
        typed = addresses.without_addresses(shlex.split(known.command))
    except ValueError:  # no command that was typed
        return ""
    return shlex.join(map(_public, typed))


def without_places(value: Any) -> Any:
    """Return the value of an option without paths, also those relative to a folder."""
    if isinstance(value, str):
        return _public(value)
    if isinstance(value, list):
        return [without_places(each) for each in value]
    return {name: without_places(each) for name, each in value.items()} if isinstance(value, dict) else value


def _public(word: str) -> str:
    if not re.search(r"[/\\~]", word):
        return word
    option, equals, _ = word.partition("=")
    return f"{option}={PLACE}" if equals and not re.search(r"[/\\~]", option) else PLACE


def _user() -> str:
    with suppress(KeyError, OSError):  # a user without an entry in the system's list
        return getpass.getuser()
    return ""


def _last(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _vocabulary(known: RunRecord) -> set[str]:
    """Return the words, in small letters, of which the names in a record consist."""
    plan = known.plan
    names = [*plan.frameworks, *plan.workload_folders, plan.study.name, *(group.name for group in plan.groups)]
    names += [text for variant in plan.variants for text in (variant.name, variant.title)]
    names += [package for each in known.environments.values() for package in each["packages"]]
    fields = re.findall(r'"([^"\\]+)":', json.dumps({**asdict(known), "environments": {}}))
    return {word.lower() for name in (*names, *fields, *VALUES) for word in (name, *re.findall(r"[A-Za-z0-9]+", name))}


# Values of records that are read by name.
VALUES = (
    "hello",
    "applied",
    "phase",
    "samples",
    "memory",
    "evaluated",
    "epoch",
    "done",
    "error",
    "warning",
    "imported",
    "profiled",
    "measure",
    "certify",
    "search",
    "probe",
    "rules",
    "pipeline",
    "cached",
    "process",
    "warm-up",
    "counted",
    "first",
    "training",
    "inference",
    "cpu",
    "cuda",
    "ascend",
    "float32",
    "float64",
    "native",
    "reference",
    "single",
    "complete",
    "interrupted",
    "running",
    "batches",
    "graph",
    "waits",
    "watched",
    "outputs",
    "network",
    "exchanged",
    "latency",
    "plain",
    "steps",
    "epochs",
    "constant",
)
