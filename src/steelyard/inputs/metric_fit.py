"""Whether the metric of a workload can be computed from the outputs of its network, as far as a plan shows this."""

from steelyard.errors import UserError
from steelyard.inputs.data.sample_arrays import described
from steelyard.statistics import metrics
from steelyard.statistics.sentences import listed
from steelyard_worker.network import Network

ACCURACY = "accuracy"
REMEDY = 'or write metric = "none" into spec.toml, so that it is only trained and timed.'


def check_metric(metric: str, network: Network, preset: str) -> None:
    """Compare a metric with the inputs and functions of a network. UserError: it lacks what the metric is computed of.

    What `predictions` returns, and the outputs of an implementation, are known in the worker only: see `evaluation`.
    """
    if metric == metrics.NONE or network.predictions:
        return
    if metric != ACCURACY:
        arrays = listed([f"'{name}'" for name in metrics.NEEDED[metric]])
        raise UserError(
            f"{preset}: the metric '{metric}' needs Network(predictions=...) in network.py, a function that returns {arrays}; "
            f"add it, {REMEDY}"
        )
    label = next((each for each in network.inputs if each.name == "label"), None)
    if label is None or label.shape or not label.dtype.startswith(("int", "uint")):
        declared = f"declares {described([label])}" if label else "has no such input"
        raise UserError(
            f"{preset}: the metric 'accuracy' compares the largest of 'logits' with the input 'label', a whole number for each "
            f"sample, but the network {declared}. Add Network(predictions=...) to network.py, name another metric, {REMEDY}"
        )
