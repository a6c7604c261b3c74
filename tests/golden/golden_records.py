"""Makes the recorded runs again, and packs them."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import golden_archives
from golden_documents import MAKERS as OF_DOCUMENTS
from golden_measured import MAKERS as MEASURED
from golden_scripted import MAKERS as SCRIPTED

MAKERS = {**SCRIPTED, **OF_DOCUMENTS, **MEASURED}
REPOSITORY = Path(__file__).resolve().parents[2]
TEXTS = {".json", ".jsonl", ".log", ".txt", ".toml"}


def record(names: list[str]) -> None:
    """Make and pack the runs of these kinds, or of all that need no real framework."""
    for name in names or [name for name in MAKERS if name != "frameworks"]:
        base = Path(tempfile.mkdtemp(prefix="golden-"))
        kept = {**os.environ}
        try:
            os.environ |= {"STEELYARD_STATE": str(base / "state"), "STEELYARD_CACHE": str(base / "cache")}
            (base / "cache").mkdir()
            MAKERS[name](base)
            shutil.rmtree(base / "cache", ignore_errors=True)
            shutil.rmtree(base / "state", ignore_errors=True)
            _scrub(base)
            packed = golden_archives.pack(name, base)
            print(f"{packed.relative_to(REPOSITORY)}: {packed.stat().st_size:,} bytes")
        finally:
            os.environ.clear()
            os.environ |= kept
            shutil.rmtree(base)


def _scrub(root: Path) -> None:
    """Replace what belongs to the machine that makes a record: paths, the name of the host."""
    known = {
        str(root): "/golden",
        str(REPOSITORY): "/steelyard",
        sys.prefix: "/venv",
        sys.base_prefix: "/python",
        str(Path.home()): "/user",
    }
    for path in root.rglob("*"):
        if path.is_file() and path.suffix in TEXTS:
            text = path.read_text(encoding="utf-8")
            for found, other in {**known, platform.node(): "machine"}.items():
                text = text.replace(found, other) if found else text
            path.write_text(text, encoding="utf-8")
