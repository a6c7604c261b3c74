"""What several checks of MXNet use."""

from mxnet import gluon, nd

KNOBS = {"lstm": "fused", "onednn": True, "embedding": "dense", "dropout": "off", "shapes": "static"}
KNOBS |= {"recomputation": "none", "micro_batches": 4}


def parameter(values=(1.0,)):
    """Return an initialised parameter."""
    found = gluon.Parameter("p", shape=(len(values),))
    found.initialize()
    found.set_data(nd.array(values))
    return found
