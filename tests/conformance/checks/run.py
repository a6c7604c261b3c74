"""Runs in a framework's interpreter: call every `check_*` of a framework's modules and print one JSON line for each."""

import importlib
import importlib.util
import json
import sys
import traceback
from pathlib import Path


def register(name, folder):
    """Import a package from its folder, as `name`."""
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def main(worker, framework, *left_out):
    """Register the worker and the checks, then run those of a framework, but some, in the order that its package gives."""
    register("steelyard_worker", Path(worker))
    register("checks", Path(__file__).parent)
    for part in importlib.import_module(f"checks.{framework}").MODULES:
        module = importlib.import_module(f"checks.{framework}.{part}")
        names = [name for name in vars(module) if name.startswith("check_") and f"{part}.{name}" not in left_out]
        for name in names:
            try:
                getattr(module, name)()
                error = ""
            except Exception:  # a check may fail in any way
                error = traceback.format_exc()
            print(json.dumps({"check": f"{part}.{name}", "error": error}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
