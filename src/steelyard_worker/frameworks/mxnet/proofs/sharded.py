"""Does MXNet divide the weights of a network among the devices or ranks that train it? Exit code 7: no; 0: yes.

It trains one step on two devices with every store of a single machine, counts what each device holds, and looks for an
interface with such a name. Servers do divide weights among themselves, but every rank still holds all of them.
"""

import importlib
import inspect
import pkgutil
import re
import sys

import mxnet as mx
from mxnet import autograd, gluon

WITHOUT = 7
NAMES = re.compile(
    r"shard|fsdp|zero_?(stage|redundancy|optim)|(weight|param|parameter|state)s?_?partition", re.IGNORECASE
)
DEVICES = [mx.cpu(0), mx.cpu(1)]


def interfaces():
    """Yield every public name of MXNet's training interfaces, and the names of their arguments."""
    found = {"mxnet.kvstore", "mxnet.optimizer", "mxnet.gluon", "mxnet.module", "mxnet.contrib"}
    for package in sorted(found):
        module = importlib.import_module(package)
        found |= {each.name for each in pkgutil.iter_modules(module.__path__, package + ".")}
    found.discard("mxnet.gluon.data")  # it divides data sets, not networks
    for name in sorted(found):
        yield name
        try:
            module = importlib.import_module(name)
        except ImportError:  # it needs a package that is not installed
            continue
        for own, value in vars(module).items():
            if own.startswith("_") or not getattr(value, "__module__", "").startswith("mxnet"):
                continue
            yield own
            if inspect.isclass(value):
                yield from (member for member in vars(value) if not member.startswith("_"))
            if inspect.isclass(value) or inspect.isfunction(value):
                try:
                    yield from inspect.signature(value).parameters
                except ValueError:
                    continue


def smallest_share(store, on_store):
    """Return the smallest share of all weights that a device holds after a step of training."""
    network = gluon.nn.Dense(8, in_units=8)
    network.initialize(ctx=DEVICES)
    trainer = gluon.Trainer(network.collect_params(), "adam", kvstore=store, update_on_kvstore=on_store)
    with autograd.record():
        losses = [network(mx.nd.ones((2, 8), ctx=device)).sum() for device in DEVICES]
    for loss in losses:
        loss.backward()
    trainer.step(4)
    mx.nd.waitall()
    parameters = network.collect_params().values()
    held = [
        sum(array.size for parameter in parameters for array in parameter.list_data() if array.context == device)
        for device in DEVICES
    ]
    return min(held) / (8 * 8 + 8)


hits = sorted({name for name in interfaces() if NAMES.search(name)})
shares = {
    (store, on_store): smallest_share(store, on_store) for store in ("local", "device") for on_store in (False, True)
}
print("interfaces with such a name:", hits or "none")
print("share of the weights that each device holds:", shares)
sys.exit(0 if hits or min(shares.values()) < 1 else WITHOUT)
