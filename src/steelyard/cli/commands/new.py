"""`steelyard new workload`: create a folder with a small working network to start from."""

import argparse
import shlex
from pathlib import Path

from steelyard.catalog import frameworks, scaffold
from steelyard.cli.commands import selection


def execute(arguments: argparse.Namespace) -> int:
    """Write the folder and print the next commands."""
    options = selection.options_of(arguments)
    frameworks.use(options.framework_folders)
    implementations = list(dict.fromkeys(options.frameworks)) or scaffold.default_frameworks()
    folder = scaffold.write(arguments.name, Path(arguments.into).expanduser().absolute(), implementations)
    where = shlex.quote(str(folder.parent))
    print(f"Created {folder} with a small working network. Certify and run it, then replace it step by step:")
    print(f"  steelyard certify --workloads {where} -w {arguments.name}:tiny")
    print(f"  steelyard run     --workloads {where} -w {arguments.name}:digits")
    return 0
