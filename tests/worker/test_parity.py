"""Every number `P-..` in the code leads to an entry of docs/parity.md, and every entry is referenced or says why not."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "parity.md"
SUFFIXES = {".py", ".toml", ".md", ".jinja", ".sql"}
NUMBER = re.compile(r"\bP-\d\d\b")


def entries(text: str) -> dict[str, str]:
    """Return {number: text} of the page."""
    parts = re.split(r"^### (P-\d\d) ", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def references() -> dict[str, set[str]]:
    """Return {number: files that refer to it}, the page itself and these tests left out."""
    found: dict[str, set[str]] = {}
    for folder in ("src", "tests", "docs", "examples", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and path not in (PAGE, Path(__file__)):
                for number in NUMBER.findall(path.read_text(encoding="utf-8")):
                    found.setdefault(number, set()).add(str(path.relative_to(ROOT)))
    return found


def test_every_number_in_the_code_has_an_entry() -> None:
    missing = {
        number: files for number, files in references().items() if number not in entries(PAGE.read_text("utf-8"))
    }
    assert not missing


def test_every_entry_is_referenced_or_says_why_not() -> None:
    used = references()
    for number, text in entries(PAGE.read_text("utf-8")).items():
        assert ("*Not referenced:*" in text) == (number not in used), (
            f"{number} in docs/parity.md, used in {used.get(number)}"
        )


def test_every_entry_appears_once_and_in_order() -> None:
    numbers = re.findall(r"^### (P-\d\d) \S", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    assert numbers == [f"P-{number:02d}" for number in range(1, len(numbers) + 1)]
