"""Measure in a framework's interpreter: our training step against a bare loop, or against a reference implementation.

Standard input: one JSON line {"worker", "job", "against": "bare"|"reference"|"bare alone", "folder", "packages", "pairs",
"block_s"}. `folder` contains the framework's loop.py and its reference implementations, `packages` the packages that these
import in addition to the framework.

Standard output: one JSON line {"ratios": [...], "step_ms", "steps"}. A ratio is our time over the other's in one pair of
blocks. Against a reference there are also {"count", "our_count", "source", "differs", "more"}: the trainable scalars of both,
the source of the reference, what it computes differently, and how many more scalars it declares to train (its MORE, or 0).
"bare alone" runs `pairs` steps of the bare loop and prints {"peak_bytes"}, the peak resident size of the process.
"""

import importlib.util
import itertools
import json
import resource
import sys
from pathlib import Path
from time import perf_counter_ns

WARM_NS = 1e9  # longest warm-up after the first steps


def register_package(name, folder):
    """Make a folder importable as a package without adding its parent folder to the path."""
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)


def main():
    """Measure one framework on one workload."""
    request = json.loads(sys.stdin.readline())
    register_package("steelyard_worker", Path(request["worker"]))
    from steelyard_worker import batches, network, protocol, tensors, timing
    from steelyard_worker.frameworks import base

    job = protocol.from_line(json.dumps(request["job"]))
    case = job.case
    adapter = base.load(case.framework, case.settings)
    described = network.describe(job.workload_folder, case.sizes)
    implementation = network.load(job.workload_folder, case.framework)
    trainer = adapter.trainer(implementation, case.sizes, described, tensors.read(Path(job.weights)), case.optimizer)
    canonical = batches.synthetic_batch(job.data)
    batch = trainer.put(canonical)
    loop = network.load(request["folder"], "loop")

    def ours(steps):
        return timing.time_block(trainer, itertools.repeat(batch), steps, perf_counter_ns).elapsed_ns

    if request["against"] == "bare alone":
        for _ in range(request["pairs"]):
            loop.bare_loop(trainer, batch, 1)
        trainer.synchronise()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"peak_bytes": peak}), file=sys.__stdout__, flush=True)
        return
    if request["against"] == "bare":
        synchronise, found = trainer.synchronise, {}

        def run(steps):
            loop.bare_loop(trainer, batch, steps)
    else:
        sys.path.append(request["packages"])
        reference = network.load(request["folder"], case.workload.replace("-", "_"))
        rule = request["job"]["case"]["optimizer"]
        step, synchronise, count = loop.reference(reference, case.sizes, rule, canonical)
        found = {"count": count, "our_count": described.trainable_count}
        found |= {"source": reference.SOURCE, "differs": reference.DIFFERS, "more": getattr(reference, "MORE", 0)}

        def run(steps):
            for _ in range(steps):
                step()

    def theirs(steps):
        synchronise()
        start = perf_counter_ns()
        run(steps)
        synchronise()
        return perf_counter_ns() - start

    ours(2), theirs(2)
    step_ns = ours(2) / 2
    more = max(1, min(8, round(WARM_NS / step_ns)))
    ours(more), theirs(more)
    step_ns = ours(more) / more
    steps = max(1, round(request["block_s"] * 1e9 / step_ns))
    ratios = []
    for pair in range(request["pairs"]):
        first, second = (ours, theirs) if pair % 2 else (theirs, ours)
        times = {first: first(steps), second: second(steps)}
        ratios.append(times[ours] / times[theirs])
    found |= {"ratios": ratios, "step_ms": step_ns / 1e6, "steps": steps}
    print(json.dumps(found), file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    main()
