"""Measure in every rank of a framework's strategy: our timed block against a bare loop, in turns.

Started by the launcher of the strategy, with the file of a job as its argument. The variable STEELYARD_BENCHMARK holds one JSON
object {"worker", "folder", "pairs", "block_s", "found"}: the worker's folder, that of the framework's loop.py, and the file into
which the first rank writes {"ratios", "step_ms", "steps"}. A ratio is our time over that of the bare loop in one pair of blocks.
"""

import importlib.util
import itertools
import json
import os
import sys
from pathlib import Path
from time import perf_counter_ns

WARM_STEPS = 10


def register_package(name, folder):
    """Make a folder importable as a package without adding its parent folder to the path."""
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)


def main():
    """Measure one strategy; ranks that do not lead do what the first one announces."""
    request = json.loads(os.environ["STEELYARD_BENCHMARK"])
    register_package("steelyard_worker", Path(request["worker"]))
    from steelyard_worker import batches, network, protocol, ranks, tensors, timing, trial
    from steelyard_worker.frameworks import base

    job = protocol.from_line(Path(sys.argv[1]).read_text(encoding="utf-8"))
    case, own = job.case, ranks.of_environment(job.case.strategy, job.spread)
    if role := os.environ.get(ranks.ROLE):
        base.serve(case.framework, job.adapter_folder, role, own)
        return
    trial._pin(job, own, protocol.EventWriter(Path(request["found"]).with_name(f"{own.rank}.jsonl"), perf_counter_ns))
    adapter = base.load(case.framework, case.settings, "", own)
    own.meet(adapter.libraries())
    described = network.describe(job.workload_folder, case.sizes)
    implementation = network.load(job.workload_folder, case.framework)
    weights = tensors.read(Path(job.weights))
    trainer = adapter.trainer(implementation, own.sizes(case.sizes), described, weights, case.optimizer)
    batch = trainer.put(own.share(batches.synthetic_batch(job.data)))
    loop = network.load(request["folder"], "loop")

    def ours(steps):
        return timing.time_block(trainer, itertools.repeat(batch), steps, perf_counter_ns, ranks=own).elapsed_ns

    def theirs(steps):
        trainer.synchronise()
        own.barrier()  # not timed: a hand-written loop has no part in it
        start = perf_counter_ns()
        loop.bare_loop(trainer, batch, steps)
        trainer.synchronise()
        return perf_counter_ns() - start

    both = {"ours": ours, "theirs": theirs}
    if not own.leads:
        for name, steps in own.orders():
            both[name](steps)
        return

    def run(name, steps):
        own.announce((name, steps))
        return both[name](steps)

    for name in both:
        run(name, WARM_STEPS)
    step_ns = run("ours", WARM_STEPS) / WARM_STEPS
    steps = max(1, round(request["block_s"] * 1e9 / step_ns))
    ratios = []
    for pair in range(request["pairs"]):
        times = {name: run(name, steps) for name in (both if pair % 2 else reversed(both))}
        ratios.append(times["ours"] / times["theirs"])
    own.end()
    found = {"ratios": ratios, "step_ms": step_ns / 1e6, "steps": steps}
    Path(request["found"]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
