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
    certify = f"steelyard certify --workloads {where} -w {arguments.name}:tiny"
    run = f"steelyard run --workloads {where} -w {arguments.name}:digits"
    if arguments.json:
        files = sorted(path.name for path in folder.iterdir() if path.is_file())
        selection.print_json({"folder": folder, "files": files, "certify": certify, "run": run})
        return 0
    print(f"Created {folder} with a small working network. Certify and run it, then replace it step by step:")
    print(f"  {certify}")
    print(f"  {run}")
    return 0
