"""Loads single files of GluonCV, because the package requires ten others."""

import importlib.util
from pathlib import Path


def gluoncv(name):
    """Load one file of GluonCV's model zoo."""
    path = Path(importlib.util.find_spec("gluoncv").origin).parent / "model_zoo" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"gluoncv_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
