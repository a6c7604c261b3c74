"""Runs in a framework's interpreter: the harness against a bare loop, or our network against a reference implementation.

Standard input: one JSON line {"worker", "job", "against": "bare"|"reference"|"bare alone", "folder", "packages", "pairs",
"block_s"}. `folder` holds the framework's loop.py and its reference implementations, `packages` what they import beyond the
framework. Standard output: one JSON line {"ratios": [...], "step_ms", "steps"}; a ratio is our time over the other's, block by
block; against a reference also {"count", "our_count", "source", "differs", "more"}: trainable scalars, what it is, what it
computes otherwise, and how many scalars it says that it trains more than ours (its MORE; without one, none). "bare alone" runs
`pairs` steps of the bare loop and prints {"peak_bytes"}, the process's peak cached size.
"""

import importlib.util
import itertools
import json
import resource
import sys
from pathlib import Path
from time import perf_counter_ns

WARM_NS = 1e9  # at most, beyond the first steps


def adopt(name, folder):
    """Import a package from its folder, without putting its surroundings on the path."""
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)


def main():
    """Measure one framework on one workload."""
    request = json.loads(sys.stdin.readline())
    adopt("steelyard_worker", Path(request["worker"]))
    from steelyard_worker import batches, measure, network, protocol, tensors
    from steelyard_worker.frameworks import base

    job = protocol.from_line(json.dumps(request["job"]))
    adapter = base.load(job.framework, job.settings)
    described = network.describe(job.workload_folder, job.sizes)
    implementation = network.load(job.workload_folder, job.framework)
    trainer = adapter.trainer(implementation, job.sizes, described, tensors.read(Path(job.weights)), job.optimizer)
    canonical = batches.synthetic_batch(job.data)
    batch = trainer.put(canonical)
    loop = network.load(request["folder"], "loop")

    def ours(steps):
        return measure.time_block(trainer, itertools.repeat(batch), steps, perf_counter_ns).elapsed_ns

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
        reference = network.load(request["folder"], job.workload.replace("-", "_"))
        rule = request["job"]["optimizer"]
        step, synchronise, count = loop.reference(reference, job.sizes, rule, canonical)
        found = {"count": count, "our_count": described.trainable_count}
        found |= {"source": reference.SOURCE, "differs": reference.DIFFERS, "more": getattr(reference, "MORE", 0)}

        def run(steps):
            for _ in range(steps):
                step()

    def theirs(steps):
        synchronise()
        begin = perf_counter_ns()
        run(steps)
        synchronise()
        return perf_counter_ns() - begin

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
