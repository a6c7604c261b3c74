"""Runs in a framework's interpreter: import the framework once, then run every job from standard input in its own fork.

Each line contains the folder of a copied worker package and a Job. A fork has its own memory, so one job cannot affect the next.
It imports the copied package and runs it as `steelyard_worker/__main__.py` does. For each job one line is printed: the exit code
of its process.
"""

import gc
import importlib
import importlib.util
import json
import os
import signal
import sys
import traceback
from pathlib import Path

# What is imported before the forks. PyTorch's adapter makes it import its compiler's settings, which takes longer than PyTorch itself.
# MXNet reads its settings from the environment when it is imported, so it is imported in each fork.
IMPORTS = {
    "pytorch": ("torch", "torch.utils.data", "torch._inductor.config"),
    "jax": ("jax", "jax.numpy", "optax"),
    "tensorflow": ("tensorflow",),
    "mindspore": ("mindspore", "mindspore.dataset"),
}
# TensorFlow reads it when it is imported, and has oneDNN off by default on processors without AVX-512. Jobs have it on.
VARIABLES = {"tensorflow": {"TF_ENABLE_ONEDNN_OPTS": "1"}}
LIMIT_S = 600  # a job that takes longer is killed
CRASHED = 1


def register_worker(folder):
    """Make a folder importable as `steelyard_worker`."""
    spec = importlib.util.spec_from_file_location(
        "steelyard_worker", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules["steelyard_worker"] = package
    spec.loader.exec_module(package)


def run(worker, line):
    """Run one job in this process, then end the process."""
    code = CRASHED
    try:
        signal.alarm(LIMIT_S)
        os.chdir(json.loads(line)["folder"])
        log = os.open("output.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        register_worker(worker)
        from steelyard_worker.trial import main

        code = main(line)
        foreign = [
            name
            for name, module in sys.modules.items()
            if name.startswith("steelyard_worker") and not Path(module.__file__).is_relative_to(worker)
        ]
        assert not foreign, f"{foreign} were not imported from {worker}."
    except BaseException:
        traceback.print_exc()
        code = CRASHED
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve(framework):
    """Import the framework, then run job after job until standard input ends."""
    os.environ.update(VARIABLES.get(framework, {}))
    for name in IMPORTS.get(framework, ()):
        importlib.import_module(name)
    assert "steelyard_worker" not in sys.modules
    # A thread that holds a lock during a fork would leave it locked forever in the child.
    threads = len(list(Path("/proc/self/task").iterdir()))
    assert threads == 1, f"{framework} started {threads - 1} threads when it was imported, so it cannot be forked."
    gc.freeze()  # garbage collection in the forks need not scan the imported modules
    for request in sys.stdin:
        worker, job = json.loads(request)
        process = os.fork()
        if not process:
            run(Path(worker), job)
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
