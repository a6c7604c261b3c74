"""`steelyard new workload`: a folder to fill in."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.catalog import frameworks, scaffold
from steelyard.cli.commands import selection

if TYPE_CHECKING:
    import argparse


def execute(arguments: argparse.Namespace) -> int:
    """Write the folder and say what to do with it."""
    frameworks.use(selection.folders_of(arguments.frameworks))
    implementations = list(dict.fromkeys(arguments.framework)) or list(scaffold.usual())
    folder = scaffold.write(arguments.name, Path(arguments.into).expanduser().absolute(), implementations)
    where = shlex.quote(str(folder.parent))
    print(f"Wrote {folder}: a small network that works. Prove it, then replace it piece by piece:")
    print(f"  steelyard certify --workloads {where} -w {arguments.name}:tiny")
    print(f"  steelyard run     --workloads {where} -w {arguments.name}:digits")
    return 0
