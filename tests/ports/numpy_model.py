"""A small framework in NumPy, for sides of ports that need no real one: modules with paths, followed by the observer."""

from __future__ import annotations

import numpy as np

from steelyard_worker.port.observed import Bridge, Call


class Module:
    """One module: `function(tensors, *inputs)`, with its tensors by role."""

    def __init__(self, path, kind, function, settings=None, **tensors):
        self.path, self.kind, self.function, self.settings = path, kind, function, settings or {}
        self.tensors = {role: np.asarray(array) for role, array in tensors.items()}


class Sgd:
    """Steps against the gradient, with weight decay on every tensor."""

    def __init__(self, rate, momentum=0.0, decay=0.0):
        self.rate, self.momentum, self.decay, self.memory, self.model = rate, momentum, decay, {}, None
        self.settings = {"rule": ["Sgd"], "learning rate": [rate], "momentum": [momentum]}

    def apply(self, gradients):
        for name, array in gradients.items():
            path, _, role = name.rpartition(".")
            tensors = self.model.modules[path].tensors
            step = array + self.decay * tensors[role]
            self.memory[name] = self.momentum * self.memory.get(name, 0.0) + step
            tensors[role] = tensors[role] - self.rate * self.memory[name]


class NumpyModel:
    """Modules and a function that calls them: `run(call, **inputs)`, with `call(path, *inputs)`.

    `frozen`: names of tensors that no gradient reaches.
    """

    kind = "numpy"
    without_randomness = True

    def __init__(self, modules, run, in_float32=False, frozen=()):
        self.frozen = frozen
        self.modules, self.run = {each.path: each for each in modules}, run
        self.dtype, self.in_float32 = np.dtype("f4"), in_float32
        self.bridge = Bridge(
            lambda value: isinstance(value, np.ndarray),
            lambda value: value,
            lambda array, like: array.astype(like.dtype),
        )

    def tensors(self):
        for module in self.modules.values():
            for role, array in module.tensors.items():
                yield f"{module.path}.{role}", array, True

    def load(self, arrays):
        for name, array in arrays.items():
            path, _, role = name.rpartition(".")
            old = self.modules[path].tensors[role]
            self.modules[path].tensors[role] = np.asarray(array).reshape(old.shape).astype(old.dtype)

    def double(self):
        if self.in_float32:
            return False
        self.dtype = np.dtype("f8")
        for module in self.modules.values():
            module.tensors = {role: array.astype(np.float64) for role, array in module.tensors.items()}
        return True

    def prepare_double(self):
        pass

    def place(self, arrays):
        return {name: array.astype(self.dtype) if array.dtype.kind == "f" else array for name, array in arrays.items()}

    def forward(self, arguments, observer, training):
        def call(path, *inputs):
            module = self.modules[path]
            names = {role: f"{path}.{role}" for role in module.tensors}
            told = Call("", path, type(module).__name__, module.kind, module.settings, names)
            inputs = observer.entered(told, inputs)
            return observer.left(module.function(module.tensors, *inputs))

        return self.run(call, **arguments)

    def gradients(self, objective):
        """Central differences, of every value."""

        def loss():
            return float(objective(lambda arguments: self.forward(arguments, Unseen(), training=False)))

        found = {}
        for module in self.modules.values():
            for role, array in module.tensors.items():
                gradient = found[f"{module.path}.{role}"] = np.zeros_like(array)
                for place in np.ndindex(array.shape if f"{module.path}.{role}" not in self.frozen else (0,)):
                    value = array[place]
                    try:
                        array[place] = value + 1e-6
                        above = loss()
                        array[place] = value - 1e-6
                        gradient[place] = (above - loss()) / 2e-6
                    finally:
                        array[place] = value
        return np.array(loss()), found

    def updater(self, made):
        optimizer = made(self)
        optimizer.model = self
        return optimizer


class Unseen:
    """An observer that keeps nothing."""

    def entered(self, call, arguments):
        return arguments

    def left(self, result):
        return result


def dense(path, width, out, seed):
    """A dense layer with an (out, in) weight."""
    draw = np.random.default_rng(seed)
    weight, bias = draw.normal(size=(out, width)).astype("f4"), draw.normal(size=out).astype("f4")
    return Module(path, "dense", lambda t, x: x @ t["weight"].T + t["bias"], weight=weight, bias=bias)


def dense_in_out(path, width, out, seed):
    """The same dense layer with an (in, out) kernel."""
    other = dense(path, width, out, seed)
    kernel, bias = other.tensors["weight"].T.copy(), other.tensors["bias"]
    return Module(path, "dense", lambda t, x: x @ t["kernel"] + t["bias"], kernel=kernel, bias=bias)


def layer_norm(path, width, epsilon):
    """A layer norm with the scale 1 and the shift 0 of a new network."""

    def normal(t, x):
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon) * t["scale"] + t["bias"]

    settings = {"epsilon": epsilon}
    return Module(path, "layer_norm", normal, settings, scale=np.ones(width, "f4"), bias=np.zeros(width, "f4"))


def embedding(path, rows, width, seed):
    """A table."""
    table = np.random.default_rng(seed).normal(size=(rows, width)).astype("f4")
    return Module(path, "embedding", lambda t, x: t["weight"][x.astype(int)], weight=table)


def attention(query, key, value, heads, divisor, causal=False):
    """Scaled dot-product attention."""
    split = [each.reshape(*each.shape[:2], heads, -1) for each in (query, key, value)]
    scores = np.einsum("bqhd,bkhd->bhqk", split[0], split[1]) / divisor
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -1e30)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bhqk,bkhd->bqhd", weights, split[2]).reshape(query.shape)


def gelu(x, approximate=False):
    """GELU in one of two forms."""
    from math import erf, pi, sqrt

    if approximate:
        return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))
    return x * 0.5 * (1 + np.vectorize(erf)(x / sqrt(2)))
