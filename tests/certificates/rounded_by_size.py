"""All layers of one kind in a lower precision from some batch size on, as edits of the worker.

A library may choose another kernel for a larger batch. `by_size = [kind, precision, batch, pass]` of a mutant: `kind` is
"convolutions" or "dense", `batch` the largest that is still computed in float32, `pass` "both", "forward" or "backward". Forward,
weights and inputs are rounded to the mantissa of the precision, and the gradient is that of exact factors; backward, the gradient
of the output is rounded.
"""

from __future__ import annotations

from rounded import LOST

_PYTORCH = """
def near(x, lost={lost}):
    flat = x.detach().contiguous()
    return ((flat.view(torch.int32) + 2 ** (lost - 1)) & -(2**lost)).view(x.dtype)


def round_by_size(module):
    def computed(layer, forward, x):
        if x.dtype != torch.float32 or len(x) <= {batch}:
            return forward(x)
        y = forward(x)
        if {forward}:
            y = y + (rounded_product(layer, near(x)) - y).detach()
        if {backward} and y.requires_grad:
            y.register_hook(near)
        return y

    def rounded_product(layer, x):
        with torch.no_grad():
            weight = near(layer.weight)
            return layer._conv_forward(x, weight, layer.bias) if {convolutions} else torch.nn.functional.linear(x, weight, layer.bias)

    from functools import partial

    for layer in module.modules():
        if isinstance(layer, torch.nn.Conv2d if {convolutions} else torch.nn.Linear):
            layer.forward = partial(computed, layer, layer.forward)


@torch.no_grad()
def load("""

_JAX = """
def near(x):
    return lax.reduce_precision(x, exponent_bits=8, mantissa_bits=23 - {lost})


@jax.custom_vjp
def rounding_gradients(y):
    return y


rounding_gradients.defvjp(lambda y: (y, None), lambda _, g: (near(g),))


def by_size(product, x, w):
    y = product(x, w)
    if x.dtype != jnp.float32 or len(x) <= {batch}:
        return y
    if {forward}:
        y = y + lax.stop_gradient(product(near(x), near(w)) - y)
    return rounding_gradients(y) if {backward} else y


@dataclass(frozen=True)
class Choices:"""

_TENSORFLOW = """
def near(x, lost={lost}):
    x = tf.convert_to_tensor(x)
    return tf.bitcast(tf.bitwise.bitwise_and(tf.bitcast(x, tf.int32) + 2 ** (lost - 1), -(2**lost)), tf.float32)


@tf.custom_gradient
def rounding_gradients(y):
    return tf.identity(y), near


def by_size(product, x, w):
    w = tf.convert_to_tensor(w)
    y = product(x, w)
    if x.dtype != tf.float32 or x.shape[0] <= {batch}:
        return y
    if {forward}:
        y = y + tf.stop_gradient(product(near(x), near(w)) - y)
    return rounding_gradients(y) if {backward} else y


class Convolution:
    \"\"\"Convolution with symmetric zero"""


def edits(framework: str, kind: str, precision: str, batch: int, which: str) -> tuple[tuple[str, str, str], ...]:
    """Return (file in the worker, text, replacement)."""
    convolutions = kind == "convolutions"
    filled = {
        "lost": LOST[precision],
        "batch": batch,
        "convolutions": convolutions,
        "forward": which != "backward",
        "backward": which != "forward",
    }
    if framework == "pytorch":
        file, loaded = "frameworks/pytorch/predictor.py", "load(self._named, network, weights)\n"
        return (
            (file, loaded, f"{loaded}        round_by_size(self._module)\n"),
            (file, "\n@torch.no_grad()\ndef load(", _PYTORCH.format(**filled)),
        )
    if framework == "jax":
        file = "frameworks/jax/layers.py"
        product = (
            (
                'y = convolution.convolve(self.choices.convolution, x, self.weight(f"{name}.weight"), stride, padding)',
                'y = by_size(lambda x, w: convolution.convolve(self.choices.convolution, x, w, stride, padding), x, self.weight(f"{name}.weight"))',
            )
            if convolutions
            else (
                'return x @ self.weight(f"{name}.weight")',
                'return by_size(jnp.matmul, x, self.weight(f"{name}.weight"))',
            )
        )
        return (file, "@dataclass(frozen=True)\nclass Choices:", _JAX.format(**filled)), (file, *product)
    file = "frameworks/tensorflow/layers.py"
    product = (
        (
            "y = convolve(self._formulation, x, self._weight, self._stride, self._padding)",
            "y = by_size(lambda x, w: convolve(self._formulation, x, w, self._stride, self._padding), x, self._weight)",
        )
        if convolutions
        else ("return tf.matmul(x, self._weight)", "return by_size(tf.matmul, x, self._weight)")
    )
    beginning = '\nclass Convolution:\n    """Convolution with symmetric zero'
    return (file, beginning, _TENSORFLOW.format(**filled)), (file, *product)
