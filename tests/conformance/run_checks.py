"""Runs in a framework's interpreter: call every `check_*` of a script and print one JSON line for each."""

import importlib.util
import json
import sys
import traceback
from pathlib import Path


def load(name, path, search=None):
    """Import a file (or a package from its folder) under a name."""
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=search)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main(worker, script):
    """Register the worker package, then run the checks in the order of the file."""
    load("steelyard_worker", Path(worker) / "__init__.py", [worker])
    module = load(Path(script).stem, Path(script))
    for name in [name for name in vars(module) if name.startswith("check_")]:
        try:
            getattr(module, name)()
            error = ""
        except Exception:  # a check may fail in any way
            error = traceback.format_exc()
        print(json.dumps({"check": name, "error": error}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
