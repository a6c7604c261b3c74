"""Writes the texts of the golden set, and says where they differ from what is shown now."""

from __future__ import annotations

import difflib
import shutil
from pathlib import Path

import golden_archives
import golden_shown

EXPECTED = Path(__file__).parent / "expected"
# Lines of one difference that are printed; `git diff` has all after they are written.
MOST_LINES = 24


def expected(kind: str) -> dict[str, str]:
    """Return the stored texts of a kind by the names of their files."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted((EXPECTED / kind).glob("*"))}


def write(names: list[str]) -> None:
    """Write what is shown now of these kinds, or of all, in place of what is stored."""
    for kind in names or golden_archives.kinds():
        texts = golden_shown.shown(kind)
        before = expected(kind)
        shutil.rmtree(EXPECTED / kind, ignore_errors=True)
        (EXPECTED / kind).mkdir(parents=True)
        for name, text in texts.items():
            (EXPECTED / kind / name).write_text(text, encoding="utf-8")
        changed = sorted(name for name in before.keys() | texts.keys() if before.get(name) != texts.get(name))
        print(f"{kind}: {', '.join(changed) or 'unchanged'}")


def differences(kind: str, now: dict[str, str]) -> list[str]:
    """Return a short difference for each file of a kind that is not as stored."""
    before = expected(kind)
    found = []
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            lines = list(
                difflib.unified_diff(
                    before.get(name, "").splitlines(),
                    now.get(name, "").splitlines(),
                    f"stored {kind}/{name}",
                    "shown now",
                    "",
                    "",
                    1,
                )
            )
            rest = [f"... {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
            found.append("\n".join(line.rstrip("\n") for line in [*lines[:MOST_LINES], *rest]))
    return found
