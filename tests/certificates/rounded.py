"""One layer in a lower precision, as edits of the worker: what `rounded = ["<layer>", "<precision>"]` of a mutant means.

The layer's weights and inputs are rounded to the mantissa of that precision, but not its sums, as tensor cores and oneDNN do it.
Autograd takes a rounded tensor for the tensor itself, so the backward pass uses rounded factors, too. A float64 run rounds nothing,
because a library that computes in a lower precision only does so with float32.
"""

from __future__ import annotations

# Bits of a float32's mantissa that are lost.
LOST = {"tf32": 13, "bfloat16": 16}

_PYTORCH = """
def rounded(x, lost={lost}):
    if x.dtype != torch.float32:
        return x
    near = ((x.detach().contiguous().view(torch.int32) + 2 ** (lost - 1)) & -(2**lost)).view(x.dtype)
    return x + (near - x.detach())


def round_layer(module):
    from torch.nn.utils import parametrize

    kernel = isinstance(module, torch.nn.LSTM)  # it reads its weights from a list

    class Rounded(torch.nn.Module):
        def forward(self, x):
            return rounded(x)

    def before(module, given):
        if kernel:
            module._flat_weights = [rounded(getattr(module, name)) for name in module._flat_weights_names]
        return tuple(map(rounded, given))

    for name in {{"weight", "w_ih", "w_hh"}} & dict(module.named_parameters(recurse=False)).keys():
        parametrize.register_parametrization(module, name, Rounded())
    module.register_forward_pre_hook(before)


@torch.no_grad()
def load("""

_JAX = """def rounded(x):
    near = lax.reduce_precision(x, exponent_bits=8, mantissa_bits=23 - {lost})
    return x + lax.stop_gradient(near - x) if x.dtype == jnp.float32 else x


@dataclass(frozen=True)
class Choices:"""

_TENSORFLOW = """
def rounded(x, lost={lost}):
    x = tf.convert_to_tensor(x)
    if x.dtype != tf.float32:
        return x
    near = tf.bitcast(tf.bitwise.bitwise_and(tf.bitcast(x, tf.int32) + 2 ** (lost - 1), -(2**lost)), tf.float32)
    return x + tf.stop_gradient(near - x)


class {name}:
    \"\"\"{doc}"""


def edits(framework: str, layer: str, precision: str) -> tuple[tuple[str, str, str], ...]:
    """Return (file in the worker, text, replacement). PyTorch's layers are named as its modules, the others' canonically."""
    lost = LOST[precision]
    if framework == "pytorch":
        file, loaded = "frameworks/pytorch/predictor.py", "load(self._named, network, weights)\n"
        here = f"{loaded}        round_layer(self._module.get_submodule({layer!r}))\n"
        return (file, loaded, here), (file, "\n@torch.no_grad()\ndef load(", _PYTORCH.format(lost=lost))
    if framework == "jax":
        file, inside = "frameworks/jax/layers.py", f"(rounded(x) if name == {layer!r} else x)"
        found = "return self.weights[name]"
        return (
            (file, "@dataclass(frozen=True)\nclass Choices:", _JAX.format(lost=lost)),
            (file, found, f"{found} if not name.startswith({layer + '.'!r}) else rounded(self.weights[name])"),
            (
                file,
                "y = convolution.convolve(self.choices.convolution, x,",
                f"y = convolution.convolve(self.choices.convolution, {inside},",
            ),
            (file, 'return x @ self.weight(f"{name}.weight")', f'return {inside} @ self.weight(f"{{name}}.weight")'),
            (file, "self.choices.recurrence.run(cell, x,", f"self.choices.recurrence.run(cell, {inside},"),
        )
    folder, change = "frameworks/tensorflow", f"if self._layer == {layer!r}"
    kernel = 'self._weight = variables.new(f"{name}.weight", *pair(kernel), channels, out)'
    convolved = "y = convolve(self._formulation, x, self._weight, self._stride, self._padding)"
    by_rounded = convolved.replace("x, self._weight", "rounded(x), rounded(self._weight)")
    own = 'self._w_ih = variables.new(f"{name}.w_ih", width, 4 * hidden)'
    read = "w_ih, w_hh, b = self._w_ih.value(), self._w_hh.value(), self._b.value()"
    convolution, lstm = "Convolution with symmetric zero", "One direction of one layer with zero"
    return (
        (
            f"{folder}/layers.py",
            f'\nclass Convolution:\n    """{convolution}',
            _TENSORFLOW.format(lost=lost, name="Convolution", doc=convolution),
        ),
        (f"{folder}/layers.py", kernel, f"{kernel}; self._layer = name"),
        (f"{folder}/layers.py", convolved, f"{by_rounded} {change} else {convolved.removeprefix('y = ')}"),
        (
            f"{folder}/recurrent.py",
            f'\nclass Lstm:\n    """{lstm}',
            _TENSORFLOW.format(lost=lost, name="Lstm", doc=lstm),
        ),
        (f"{folder}/recurrent.py", own, f"{own}; self._layer = name"),
        (
            f"{folder}/recurrent.py",
            read,
            f"{read}\n        x, w_ih, w_hh = map(rounded, (x, w_ih, w_hh)) {change} else (x, w_ih, w_hh)",
        ),
    )
