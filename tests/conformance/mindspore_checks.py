"""What the MindSpore adapter relies on; run by the interpreter of its environment."""

import time
from dataclasses import replace
from pathlib import Path

import mindspore
import numpy as np
import steelyard_worker
from mindspore import Parameter, Tensor, nn, ops

from steelyard_worker import network
from steelyard_worker.frameworks.mindspore import adapter, optimizers
from steelyard_worker.protocol import Optimizer, Refusal, Settings

WORKLOADS = Path(steelyard_worker.__file__).parent / "workloads"
RESNET = {"channels": 3, "image": 32, "width": 8, "stem": "seed", "classes": 10, "batch": 4}
LSTM = {"vocabulary": 50, "length": 6, "embedding": 4, "hidden": 3, "layers": 2, "bidirectional": True,
        "readout": "first+last", "train_embedding": True, "classes": 2, "batch": 4}  # fmt: skip

GRADIENTS = (0.5, -0.2, 0.3)


def trajectory(spec, name="p"):
    """Return p after each of three gradients, from p = 1."""
    p = Parameter(Tensor(np.ones(1, np.float32)), name=name)
    update, _ = optimizers.update_rule(spec, {"p": p})
    path = []
    for number, gradient in enumerate(GRADIENTS, 1):
        gradients = (Tensor(np.full(1, gradient, np.float32)),)
        if spec.flavour == "strict":
            update(gradients, *(Tensor(value, mindspore.float32) for value in optimizers.scalars(spec, number)))
        else:
            update(gradients)
        path.append(float(p.asnumpy()[0]))
    return path


def rule(name, **constants):
    """Return a rule with the large epsilon of the golden values."""
    return Optimizer(name, 0.1, epsilon=0.1, **constants)


def check_strict_rules_give_the_golden_trajectories():
    decayed = {"weight_decay": 0.1, "decay": ("p",)}
    golden = [
        (rule("sgd", momentum=0.9), (0.95, 0.925, 0.8725)),
        (rule("sgd", momentum=0.9, nesterov=True), (0.905, 0.9025, 0.82525)),
        (rule("adam"), (0.9166667, 0.8892955, 0.8467954)),
        (rule("adam", form="epsilon-hat"), (0.9863474, 0.9813203, 0.9724438)),
        (rule("adamw", **decayed), (0.9066667, 0.8702288, 0.8190265)),
    ]
    for spec, expected in golden:
        found = trajectory(replace(spec, flavour="strict"))
        np.testing.assert_allclose(found, expected, rtol=3e-6, err_msg=str(spec))


def check_native_rules_have_their_declared_form():
    np.testing.assert_allclose(trajectory(rule("sgd", momentum=0.9)), (0.95, 0.925, 0.8725), rtol=3e-6)
    nesterov = rule("sgd", momentum=0.9, nesterov=True)
    np.testing.assert_allclose(trajectory(nesterov), (0.905, 0.9025, 0.82525), rtol=3e-6)
    np.testing.assert_allclose(trajectory(rule("adam")), (0.9863474, 0.9813203, 0.9724438), rtol=3e-6)


def check_the_decay_list_holds_whatever_a_tensor_is_called():
    decayed = {"weight_decay": 0.1, "decay": ("p",)}
    for name in ("p", "bn.gamma", "bn.beta"):
        sgd, adam = rule("sgd", momentum=0.9, **decayed), rule("adam", **decayed)
        np.testing.assert_allclose(trajectory(sgd, name), (0.94, 0.8966, 0.818574), rtol=3e-6)
        np.testing.assert_allclose(trajectory(adam, name), (0.9840523, 0.9754002, 0.9623879), rtol=3e-6)
    undecayed = rule("sgd", momentum=0.9, weight_decay=0.1, decay=("another",))
    np.testing.assert_allclose(trajectory(undecayed), (0.95, 0.925, 0.8725), rtol=3e-6)


def check_running_variance_is_unbiased():
    layer = nn.BatchNorm1d(2, momentum=0.9).set_train()
    layer(Tensor(np.arange(8.0, dtype=np.float32).reshape(4, 2)))
    np.testing.assert_allclose(layer.moving_mean.asnumpy(), (0.3, 0.4), rtol=1e-5)
    np.testing.assert_allclose(layer.moving_variance.asnumpy(), (1.566667, 1.566667), rtol=1e-5)


def check_reading_a_result_waits_for_it():
    a = Tensor(np.random.default_rng(1).standard_normal((1500, 1500)).astype(np.float32))
    ops.matmul(a, a).asnumpy()
    begin = time.perf_counter()
    product = ops.matmul(a, a)
    for _ in range(4):
        product = ops.matmul(product, a)
    returned = time.perf_counter() - begin
    product.asnumpy()
    finished = time.perf_counter() - begin
    assert finished > 2 * returned, (returned, finished)


def trainer(workload, sizes, optimizer=None, flavour="strict"):
    """Return (trainer, described network, weights) of a workload with drawn weights, in PyNative mode."""
    described = network.describe(WORKLOADS / workload, sizes)
    implementation = network.load(WORKLOADS / workload, "mindspore")
    generator = np.random.default_rng(3)
    weights = {p.name: generator.standard_normal(p.shape).astype(np.float32) for p in described.parameters}
    spec = optimizer or Optimizer("sgd", 0.1, flavour=flavour)
    made = adapter.Trainer(Settings("pynative"), implementation, sizes, described, weights, spec)
    return made, described, weights


def batch(described, size, seed=1):
    """Return a drawn batch of every input."""
    g = np.random.default_rng(seed)
    return {
        each.name: g.standard_normal((size, *each.shape)).astype(np.float32)
        if each.dtype == "float32"
        else g.integers(0, each.high, (size, *each.shape), dtype=np.int32)
        for each in described.inputs
    }


def check_canonical_weights_come_back_bit_by_bit():
    for workload, sizes in (("resnet18", RESNET), ("lstm-imdb", LSTM)):
        made, _, weights = trainer(workload, sizes)
        found = made.state()
        assert found.keys() == weights.keys()
        for name, array in weights.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)


def check_repeated_words_add_their_gradients_and_absent_words_have_none():
    sizes = {**LSTM, "layers": 1, "bidirectional": False, "readout": "last"}
    made, described, _ = trainer("lstm-imdb", sizes)
    drawn = {**batch(described, 4), "tokens": np.full((4, 6), 7, np.int32)}
    _, _, gradients = made.gradients(made.put(drawn))
    rows = np.abs(gradients["embedding.weight"]).sum(axis=1)
    assert rows[7] > 0 and np.count_nonzero(rows) == 1
    # The same words spread over rows with equal vectors: their gradients must add up to that of the one row.
    spread, _, weights = trainer("lstm-imdb", sizes)
    alike = {**weights, "embedding.weight": np.tile(weights["embedding.weight"][7], (50, 1))}
    adapter.load(spread._named, described, alike)
    drawn["tokens"] = np.arange(24, dtype=np.int32).reshape(4, 6)
    _, _, apart = spread.gradients(spread.put(drawn))
    np.testing.assert_allclose(apart["embedding.weight"].sum(0), gradients["embedding.weight"][7], rtol=2e-5)


def check_absent_words_keep_moving_by_their_momentum():
    spec = Optimizer("sgd", 0.1, momentum=0.9)
    made, described, _ = trainer("lstm-imdb", {**LSTM, "layers": 1, "bidirectional": False}, spec)
    for word in (7, 8):
        made.step(made.put({**batch(described, 4), "tokens": np.full((4, 6), word, np.int32)}))
        before = made.state()["embedding.weight"] if word == 7 else before
    assert np.abs(made.state()["embedding.weight"][7] - before[7]).sum() > 0


def check_the_second_bias_of_an_lstm_is_zero_and_stays():
    made, described, _ = trainer("lstm-imdb", LSTM, flavour="native")
    made.step(made.put(batch(described, 4)))
    biases = made._cell.lstm.b_hh_list
    assert len(biases) == 4
    for bias in biases:
        np.testing.assert_array_equal(bias.asnumpy(), 0)


def check_statistics_move_in_training_and_rest_in_inference():
    made, described, weights = trainer("resnet18", RESNET)
    positive = {name: np.abs(array) + 0.5 if "running_var" in name else array for name, array in weights.items()}
    adapter.load(made._named, described, positive)
    placed = made.put(batch(described, 4))
    made.outputs(placed)
    np.testing.assert_array_equal(made.state()["stem.bn.running_mean"], weights["stem.bn.running_mean"])
    made.step(placed)
    assert np.any(made.state()["stem.bn.running_mean"] != weights["stem.bn.running_mean"])


def check_synchronise_waits_for_every_parameter():
    made, described, _ = trainer("resnet18", {**RESNET, "batch": 32})
    placed = made.put(batch(described, 32))
    for _ in range(3):
        made.step(placed)
    made.synchronise()
    begin = time.perf_counter()
    for _ in range(3):
        made.step(placed)
    made.synchronise()
    synchronised = time.perf_counter() - begin
    begin = time.perf_counter()
    made.state()
    assert time.perf_counter() - begin < synchronised / 5, "reading the tensors had to wait for kernels"


def check_what_it_cannot_do_is_refused():
    for settings in (Settings("graph", device="cuda"), Settings("eager"), Settings("graph", precision="float64")):
        try:
            adapter.Adapter(settings)
        except Refusal as refusal:
            assert refusal.kind == "unsupported"
        else:
            raise AssertionError(f"{settings} was accepted")
