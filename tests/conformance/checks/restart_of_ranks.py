"""Runs in every rank of a strategy: check that its trainer begins again. The argument is a file with what `test_restart` says."""

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path


def main(path):
    """Do the work of a rank, or of a process beside the ranks."""
    spec = importlib.util.spec_from_file_location("run", Path(__file__).parent / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    told = json.loads(Path(path).read_text())
    run.register("steelyard_worker", Path(told["worker"]))
    run.register("checks", Path(__file__).parent)
    from steelyard_worker import ranks, strategy
    from steelyard_worker.frameworks import base

    own = ranks.of_environment(told["strategy"], strategy.Spread(**told["spread"]))
    if role := os.environ.get(ranks.ROLE):
        base.serve(told["framework"], "", role, own)
        return
    check(told, own)


def check(told, own):
    """Compare a trainer after `restart` with a new one, as a rank of a strategy."""
    from checks import restarts
    from steelyard_worker import network
    from steelyard_worker.case import Settings
    from steelyard_worker.frameworks import base

    settings = Settings(told["mode"], threads=1, knobs=told["knobs"])
    adapter = base.load(told["framework"], settings, "", own)
    own.meet({})
    implementation = network.load(told["workload"], told["framework"])
    subject = restarts.Subject(implementation, network.describe(told["workload"], told["sizes"]), told["sizes"])
    subject.sizes, subject.batches = own.sizes(told["sizes"]), [own.share(batch) for batch in subject.batches]
    if own.spread.kind == "asynchronous":
        refuses(subject.built(adapter, restarts.MOMENTUM), subject.weights, own)
    else:
        # What is left in the memory of a rule is seen by the checks of single processes.
        restarts.check_restart(subject, adapter, None, restarts.RULES[told["rule"]], restarts.RATES)
    own.barrier()


def refuses(trainer, weights, own):
    """Check that a trainer says why it does not begin again; ranks that only compute for the first have nothing to say."""
    from steelyard_worker.protocol import Refusal

    try:
        trainer.restart(weights)
    except Refusal as refusal:
        assert refusal.kind == "unsupported"
    else:
        assert not own.leads


if __name__ == "__main__":
    main(sys.argv[1])
