"""Read one job from standard input, or from the file that is named, and run it.

Started by its path with the interpreter of a framework's environment.
"""

from __future__ import annotations

import sys


def _register_package() -> None:
    """Make this folder importable as `steelyard_worker` without adding its parent folder to the path."""
    import importlib.util
    from pathlib import Path

    folder = Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location(
        "steelyard_worker", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        sys.exit(f"{folder} is incomplete. Install steelyard again.")
    package = importlib.util.module_from_spec(spec)
    sys.modules["steelyard_worker"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    sys.path = [entry for entry in sys.path if entry]
    _register_package()
    from steelyard_worker.trial import end, main

    if sys.argv[1:]:  # the ranks of a trial share the job
        from pathlib import Path

        job = Path(sys.argv[1]).read_text(encoding="utf-8")
    else:
        job = sys.stdin.readline()
    end(main(job), job)
