"""Make the golden set again: `python tests/golden record [KIND ...]` the runs, `python tests/golden write [KIND ...]` the texts."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "report"), str(HERE.parents[1] / "src")]


def main(arguments: list[str]) -> int:
    """Do what the arguments say; without names, for all kinds."""
    if arguments[:1] == ["record"]:
        import golden_records

        golden_records.record(arguments[1:])
    elif arguments[:1] == ["write"]:
        import golden_texts

        golden_texts.write(arguments[1:])
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
