"""A parsed page: elements with their attributes, texts of table cells, and figures."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

EMPTY = {"meta", "br", "link", "img", "input", "hr"}


@dataclass
class Element:
    """One element with all text inside it."""

    tag: str
    attributes: dict
    text: str = ""
    parents: list = field(default_factory=list)
    on_paper: bool = True

    @property
    def words(self):
        """The text with single spaces."""
        return " ".join(self.text.split())


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.elements, self._open = [], []

    def handle_starttag(self, tag, attrs):
        element = Element(tag, dict(attrs), parents=[parent.tag for parent in self._open])
        hidden = {"screen", "explanation"} & set((element.attributes.get("class") or "").split())
        element.on_paper = not hidden and all(parent.on_paper for parent in self._open)
        self.elements.append(element)
        if tag not in EMPTY:
            self._open.append(element)

    def handle_endtag(self, tag):
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data):
        for element in self._open:
            element.text += data + " "


class Page:
    """A page with access to its elements."""

    def __init__(self, html):
        reader = _Reader()
        reader.feed(html)
        assert not reader._open, "an element was left open"
        self.html, self.elements = html, reader.elements

    def all(self, tag, **wanted):
        """Return the elements of a tag with these attributes (class_ is a word among the classes)."""
        classes = wanted.pop("class_", None)
        found = [e for e in self.elements if e.tag == tag and all(e.attributes.get(k) == v for k, v in wanted.items())]
        return [e for e in found if classes is None or classes in (e.attributes.get("class") or "").split()]

    def text(self):
        """Return the visible text."""
        return " ".join(e.words for e in self.all("header") + self.all("main") + self.all("footer"))

    def figures(self):
        """Return name -> figure for plotly.js."""
        (holder,) = self.all("script", id="figures")
        return {figure["name"]: figure for figure in json.loads(holder.text)}

    def library(self):
        """Return the source of the plotting library."""
        (holder,) = self.all("script", id="library")
        return gzip.decompress(base64.b64decode(holder.text.strip())).decode()


def check_policy(page, scripts=1):
    """Check that a page lets a browser run its own scripts and style sheet, and nothing else. `scripts`: how many it has."""
    (meta,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    rules = dict(rule.split(" ", 1) for rule in meta.attributes["content"].split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    drawn, styled = (re.findall(rf"<{tag}>(.*?)</{tag}>", page.html, re.DOTALL) for tag in ("script", "style"))
    assert (len(drawn), len(styled)) == (scripts, 1), "the other scripts hold data"
    drawing = [page.library()] if page.all("script", id="library") else []
    assert rules["script-src"].split() == [_digest(each) for each in (*drawn, *drawing)]
    assert rules["style-src-elem"].split() == [_digest(each) for each in (*styled, *("" for _ in drawing))]
    before = page.html.partition("<meta http-equiv")[0]
    assert "<script" not in before and "<style" not in before
    assert not [element for element in page.elements if any(name.startswith("on") for name in element.attributes)]


def _digest(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
