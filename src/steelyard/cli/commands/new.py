"""`steelyard new workload`: create a folder with a small working network to start from."""

import argparse
import shlex
from pathlib import Path

from steelyard.catalog import frameworks, scaffold, workloads
from steelyard.cli.commands import selection


def execute(arguments: argparse.Namespace) -> int:
    """Write the folder and print the next commands."""
    options = selection.options_of(arguments)
    frameworks.use(options.framework_folders)
    implementations, parent = list(dict.fromkeys(options.frameworks)), Path(arguments.into).expanduser().absolute()
    if arguments.like:
        folder = scaffold.copy(arguments.name, parent, arguments.like, options.workload_folders, implementations)
    else:
        folder = scaffold.write(arguments.name, parent, implementations or scaffold.default_frameworks())
    where = shlex.quote(str(folder.parent))
    small, measured = _presets(folder)
    certify = f"steelyard certify --workloads {where} -w {arguments.name}:{small}"
    run = f"steelyard run --workloads {where} -w {arguments.name}:{measured}"
    if arguments.json:
        files = sorted(path.name for path in folder.iterdir() if path.is_file())
        selection.print_json({"folder": folder, "files": files, "certify": certify, "run": run})
        return 0
    what = f"a copy of {arguments.like}" if arguments.like else "a small working network"
    print(f"Created {folder} with {what}. Certify and run it, then replace it step by step:")
    print(f"  {certify}")
    print(f"  {run}")
    return 0


def _presets(folder: Path) -> tuple[str, str]:
    """Return the preset to certify first, and one to measure: the first that is not for certificates alone."""
    presets = list(workloads.parse(folder / "spec.toml").presets)
    small = "tiny" if "tiny" in presets else presets[0]
    return small, next((each for each in presets if each != small), small)
