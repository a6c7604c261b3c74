"""Train in turns in a framework's interpreter: one block of steps for each line on standard input.

First line: {"worker", "job", "warm_s", "pin"}. Answer: {"step_ns"} once the process is warm. Each further line is a number of
steps, the answer to it the nanoseconds that they took; "rebuild" discards the trainer and builds a new one.
"""

import gc
import itertools
import json
import os
import sys
from pathlib import Path
from time import perf_counter_ns

from inside import register_package


def pin_threads():
    """Bind the threads that have computed the most to one core each."""
    cores, times = sorted(os.sched_getaffinity(0)), []
    for thread in Path("/proc/self/task").iterdir():
        fields = (thread / "stat").read_text().rsplit(")", 1)[1].split()
        times.append((int(fields[11]) + int(fields[12]), int(thread.name)))
    for core, (_, thread) in zip(cores, sorted(times, reverse=True), strict=False):
        os.sched_setaffinity(thread, {core})


def main():
    """Answer until standard input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr
    request = json.loads(sys.stdin.readline())
    register_package("steelyard_worker", Path(request["worker"]))
    from steelyard_worker import batches, network, protocol, tensors, timing
    from steelyard_worker.frameworks import base

    job = protocol.from_line(json.dumps(request["job"]))
    case = job.case
    adapter = base.load(case.framework, case.settings)
    described = network.describe(job.workload_folder, case.sizes)
    implementation = network.load_implementation(job.workload_folder, case.workload, case.framework, "")

    def build():
        weights = tensors.read(Path(job.weights))
        trainer = adapter.trainer(implementation, case.sizes, described, weights, case.optimizer)
        return trainer, itertools.repeat(trainer.put(batches.synthetic_batch(job.data)))

    def run(steps):
        return timing.time_block(trainer, feed, steps, perf_counter_ns).elapsed_ns

    def answer(value):
        print(json.dumps(value), file=answers, flush=True)

    trainer, feed = build()
    began = perf_counter_ns()
    run(3)
    while perf_counter_ns() - began < request["warm_s"] * 1e9:
        run(3)
    if request["pin"]:
        pin_threads()
    answer({"step_ns": run(5) / 5})
    for line in sys.stdin:
        if line.strip() == "rebuild":
            trainer = feed = None
            gc.collect()
            trainer, feed = build()
            run(10)
            answer(0)
        else:
            answer(run(int(line)))


if __name__ == "__main__":
    main()
