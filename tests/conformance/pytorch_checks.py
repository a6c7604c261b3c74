"""What the PyTorch adapter relies on; run by the interpreter of its environment."""

import math
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import tomllib
import torch
from torch.distributed.algorithms.model_averaging import utils as averaging

import steelyard_worker
from steelyard_worker import batches, dropout, network
from steelyard_worker.case import Optimizer, Settings
from steelyard_worker.frameworks.pytorch import cutting, layers, optimizers, recomputation, recurrent, staged
from steelyard_worker.frameworks.pytorch import settings as process
from steelyard_worker.frameworks.pytorch.adapter import Adapter

HERE = Path(__file__).parent
WORKLOADS = Path(steelyard_worker.__file__).parent / "workloads"
GRADIENTS = (0.5, -0.2, 0.3)
KNOBS = {"layout": "channels-last", "lstm": "fused", "embedding": "dense", "onednn": True, "cudnn_search": False}
KNOBS |= {"shapes": "automatic", "tf32": False, "dropout": "off", "recomputation": "none", "micro_batches": 4}
# The learning rates of three steps: the last of two stays.
RATES = np.array((0.1, 0.02), np.float32)


def trajectory(spec, rates=None):
    """Return p after each of three gradients, from p = 1."""
    p = torch.nn.Parameter(torch.ones(1))
    rule = optimizers.update_rule(spec, {"p": p}, rates)
    path = []
    for gradient in GRADIENTS:
        p.grad = torch.full_like(p, gradient)
        rule.step()
        path.append(p.item())
    return path


def rule(name, **constants):
    """Return a rule with the large epsilon of the golden values."""
    return Optimizer(name, 0.1, epsilon=0.1, **constants)


def check_both_implementations_give_the_golden_trajectories():
    decayed = {"weight_decay": 0.1, "decay": ("p",)}
    golden = [
        (rule("sgd", momentum=0.9), (0.95, 0.925, 0.8725)),
        (rule("sgd", momentum=0.9, nesterov=True), (0.905, 0.9025, 0.82525)),
        (rule("sgd", momentum=0.9, **decayed), (0.94, 0.8966, 0.818574)),
        (rule("adam"), (0.9166667, 0.8892955, 0.8467954)),
        (rule("adam", **decayed), (0.9142857, 0.8715277, 0.8161729)),
        (rule("adamw", **decayed), (0.9066667, 0.8702288, 0.8190265)),
    ]
    for spec, expected in golden:
        for implementation in ("reference", "native"):
            found = trajectory(Optimizer(**{**vars(spec), "implementation": implementation}))
            np.testing.assert_allclose(found, expected, rtol=2e-6, err_msg=f"{spec} {implementation}")


def check_each_step_has_its_own_learning_rate():
    decayed = {"weight_decay": 0.1, "decay": ("p",)}
    golden = [
        (rule("sgd", momentum=0.9), (0.95, 0.945, 0.9345)),
        (rule("sgd", momentum=0.9, **decayed), (0.94, 0.93132, 0.9156454)),
        (rule("adam"), (0.9166667, 0.9111924, 0.9026924)),
        (rule("adamw", **decayed), (0.9066667, 0.8993791, 0.8890803)),
    ]
    for spec, expected in golden:
        for implementation in ("reference", "native"):
            found = trajectory(Optimizer(**{**vars(spec), "implementation": implementation}), RATES)
            np.testing.assert_allclose(found, expected, rtol=2e-6, err_msg=f"{spec} {implementation}")
    kept = rule("sgd", momentum=0.9, implementation="reference", form="rate-in-momentum")
    np.testing.assert_allclose(trajectory(kept, RATES), (0.95, 0.909, 0.8661), rtol=2e-6)


def check_a_constant_rate_is_that_of_the_optimizer_alone():
    for name in ("sgd", "adam", "adamw"):
        assert isinstance(
            optimizers.update_rule(rule(name), {"p": torch.nn.Parameter(torch.ones(1))}), torch.optim.Optimizer
        )


def check_the_epsilon_hat_form_gives_its_golden_trajectory():
    found = trajectory(rule("adam", implementation="reference", form="epsilon-hat"))
    np.testing.assert_allclose(found, (0.9863474, 0.9813203, 0.9724438), rtol=2e-6)


def check_clipping_is_exact_for_large_tensors():
    """The reason why the norm is computed by rows. If the last line fails, PyTorch's own function is exact enough again."""
    large, small = (torch.nn.Parameter(torch.zeros(shape)) for shape in ((8192, 1024), (3,)))
    rule = optimizers.update_rule(Optimizer("sgd", 1.0, clip=1.0), {"large": large, "small": small})
    torch.manual_seed(0)
    for p in (large, small):
        p.grad = torch.randn(p.shape)
    own = torch.nn.utils.get_total_norm([large.grad, small.grad])
    exact = math.sqrt(sum(float(p.grad.double().square().sum()) for p in (large, small)))
    rule.step()
    moved = math.sqrt(sum(float(p.detach().double().square().sum()) for p in (large, small)))
    assert abs(moved - 1) < 2e-6, moved
    assert abs(float(own) / exact - 1) > 2e-5, float(own) / exact


def check_running_variance_is_unbiased():
    layer = torch.nn.BatchNorm1d(2, momentum=0.1)
    layer(torch.arange(8.0).reshape(4, 2))
    np.testing.assert_allclose(layer.running_mean, (0.3, 0.4), rtol=1e-6)
    np.testing.assert_allclose(layer.running_var, (1.566667, 1.566667), rtol=1e-6)


def check_repeated_and_absent_embedding_rows_are_updated_once():
    p = torch.nn.Parameter(torch.ones(3, 1))
    update = optimizers.update_rule(Optimizer("adam", 0.1, epsilon=1e-8), {"p": p})
    torch.nn.functional.embedding(torch.tensor([1, 1]), p).sum().backward()
    update.step()
    np.testing.assert_allclose(p.detach().numpy().ravel(), (1.0, 0.9, 1.0), rtol=1e-6)


def check_the_implementations_of_an_lstm_agree_and_are_told_apart():
    """Outputs and gradients in float64 of two layers in both directions, batch first, with and without the compiler."""
    found, state = {}, None
    for mode, kind in (
        ("eager", "fused"),
        ("eager", "cell"),
        ("eager", "loop"),
        ("compiled", "cell"),
        ("compiled", "loop"),
    ):
        settings = Settings(mode, precision="float64", knobs=KNOBS | {"lstm": kind})
        assert process.read_back(replace(settings, mode="eager"))["lstm"] == kind
        lstm = recurrent.Lstm(3, 4, 2, batch_first=True, bidirectional=True)
        state = state or lstm.double().state_dict()
        lstm.load_state_dict(state)
        lstm = process.placed(lstm, settings)
        x = torch.linspace(-2, 2, 30, dtype=torch.float64).view(2, 5, 3).requires_grad_()
        y = lstm(x)
        y.sin().sum().backward()
        trained = [p.grad for name, p in lstm.named_parameters() if "bias_hh" not in name]
        assert len(trained) == 12 == sum(p.requires_grad for p in lstm.parameters())
        found[mode, kind] = [y.detach(), x.grad, *trained]
    for way in found.values():
        for each, expected in zip(way, found["eager", "fused"], strict=True):
            np.testing.assert_allclose(each, expected, rtol=1e-10, atol=1e-13)


def check_sparse_gradients_give_the_dense_update_of_sgd_and_the_update_of_rows_of_adam():
    """One word twice, then another one: with momentum, Adam moves the first word again, and SparseAdam does not."""
    found = {}
    for name, kind in (("sgd", "dense"), ("sgd", "sparse"), ("adam", "dense"), ("adam", "lazy")):
        table = process.placed(torch.nn.Embedding(3, 1), Settings("eager", knobs=KNOBS | {"embedding": kind}))
        torch.nn.init.ones_(table.weight)
        rule = optimizers.update_rule(Optimizer(name, 0.1), {"p": table.weight}, sparse=layers.sparse_tensors(table))
        for word in (1, 2):
            rule.zero_grad(set_to_none=True)
            table(torch.tensor([word, word])).sum().backward()
            rule.step()
        found[name, kind] = table.weight.detach().numpy().ravel()
        assert process.read_back(Settings("eager", knobs=KNOBS | {"embedding": kind}))["embedding"] == kind
    np.testing.assert_allclose(found["sgd", "sparse"], (1, 0.8, 0.8), rtol=1e-6)
    np.testing.assert_allclose(found["sgd", "sparse"], found["sgd", "dense"], rtol=1e-6)
    np.testing.assert_allclose(found["adam", "lazy"][:2], (1, 0.9), rtol=1e-5)
    assert found["adam", "dense"][1] < 0.85, found


def check_onednn_can_be_switched_off():
    settings = Settings("eager", knobs=KNOBS | {"onednn": False})
    try:
        process.apply(settings)
        assert process.read_back(settings)["onednn"] is False
    finally:
        process.apply(replace(settings, knobs=KNOBS))
    assert process.read_back(settings)["onednn"] is True


def check_ctc_agrees_with_the_enumeration_of_all_paths():
    loss = network.load(WORKLOADS / "deepspeech2", "pytorch").loss

    def found(logits, batch):
        logits = torch.from_numpy(logits).requires_grad_()
        value = loss({"logits": logits}, {name: torch.from_numpy(array).long() for name, array in batch.items()})
        value.backward()
        return value.detach(), logits.grad

    network.load(HERE, "ctc_golden").compare(found)


def check_the_ways_to_compile_for_several_shapes_are_told_apart():
    settings = Settings("compiled", knobs=KNOBS)
    for value in ("automatic", "static", "dynamic"):
        assert process.read_back(replace(settings, knobs=KNOBS | {"shapes": value}))["shapes"] == value
    with mock.patch.dict(process.SHAPES, {"static": None}):
        assert process.read_back(replace(settings, knobs=KNOBS | {"shapes": "static"}))["shapes"] == "automatic"


def check_no_shape_is_left_to_eager_pytorch():
    """PyTorch stops compiling a function after eight shapes, without an error; the settings of the process lift that limit."""

    def compiled_for(lengths):
        graphs = []
        torch.compiler.reset()
        function = torch.compile(lambda x: x + 1, backend=lambda g, _: graphs.append(g) or g.forward, dynamic=False)
        for length in range(2, 2 + lengths):
            function(torch.zeros(length))
        return len(graphs)

    limits = {name: getattr(torch._dynamo.config, name) for name in ("recompile_limit", "fail_on_recompile_limit_hit")}
    torch._dynamo.config.recompile_limit, torch._dynamo.config.fail_on_recompile_limit_hit = 8, False
    assert compiled_for(12) == 8
    process.wrapped(torch.sin, Settings("compiled", knobs=KNOBS))
    assert compiled_for(12) == 12
    for name, value in limits.items():
        setattr(torch._dynamo.config, name, value)


def check_deep_speech_infers_the_same_from_batches_that_are_cut():
    """In training its batch norms count padded frames; Tacotron 2 reads the embedding of padding, so it differs in inference, too."""
    torch.manual_seed(0)
    found = {}
    for name in ("deepspeech2", "tacotron2"):
        folder = WORKLOADS / name
        sizes = tomllib.loads((folder / "spec.toml").read_text())["presets"]["tiny-lengths"]["sizes"]
        described, implementation = (
            network.describe(folder, sizes),
            network.load_implementation(folder, name, "pytorch"),
        )
        drawn = described.draw_set(np.random.default_rng(5), 4)
        cut = {each.name: tuple(each.lengths.items()) for each in described.inputs if each.lengths}
        module = implementation.build(sizes)
        for training in (False, True):
            module.train(training)
            short, long = (
                _first_output(module, implementation.INPUTS, batches.Split(drawn, cut=each)) for each in (cut, {})
            )
            assert short.numel() < long.numel()
            long = long[tuple(map(slice, short.shape))]
            found[name, training] = float((short - long).norm() / long.norm())
    assert found["deepspeech2", False] < 1e-6, found
    assert min(found[key] for key in found if key != ("deepspeech2", False)) > 1e-4, found


def _first_output(module, inputs, split):
    """Return the first output for all samples of a split."""
    placed = {name: torch.from_numpy(array) for name, array in split.take(np.arange(len(split))).items()}
    return next(iter(module(*[placed[name] for name in inputs]).values()))


def check_settings_without_effect_are_reported():
    """A module that is not converted, and a compiler that is disabled by TORCHDYNAMO_DISABLE."""
    settings = Settings("compiled", precision="float64", knobs=KNOBS)
    found = process.read_back(settings)
    assert (found["mode"], found["precision"], found["layout"]) == ("compiled", "float64", "channels-last"), found
    with mock.patch.object(torch.nn.Module, "to", lambda self, *_, **__: self):
        found = process.read_back(settings)
    assert (found["precision"], found["layout"]) == ("float32", "channels-first"), found
    with mock.patch.object(recurrent, "choose"):
        assert process.read_back(replace(settings, knobs=KNOBS | {"lstm": "loop"}))["lstm"] == "fused"
    with mock.patch.dict("os.environ", {"TORCHDYNAMO_DISABLE": "1"}):
        assert process.read_back(settings)["mode"] == "eager"


def check_dropout_has_its_rate_and_acts_in_training_only():
    def dropped(ones, rate):
        with dropout.built_as("on"):
            return layers.dropout(rate).train()(torch.from_numpy(ones)).numpy()

    effects = network.load(HERE, "dropout_effects")
    effects.check_layer(dropped)
    effects.check_networks(
        "pytorch", *(Adapter(Settings("eager", knobs=KNOBS | {"dropout": each})) for each in ("off", "on"))
    )


def check_dropout_without_effect_is_reported():
    asked = Settings("eager", knobs=KNOBS | {"dropout": "on"})
    assert process.read_back(asked)["dropout"] == "on"
    with mock.patch.object(layers, "dropout", lambda _: torch.nn.Identity()):
        assert process.read_back(asked)["dropout"] == "off"


def check_the_parts_of_a_network_compute_together_what_it_does():
    for name, preset, count in (("vgg16", "tiny", 3), ("googlenet", "tiny-aux", 2), ("gnmt", "tiny", 4)):
        spec = tomllib.loads((WORKLOADS / name / "spec.toml").read_text())
        sizes = spec["presets"][preset]["sizes"]
        described = network.describe(str(WORKLOADS / name), sizes)
        implementation = network.load_implementation(str(WORKLOADS / name), name, "pytorch")
        weights = {each.name: np.full(each.shape, 0.01, np.float32) for each in described.parameters}
        settings = Settings("eager", knobs=KNOBS, precision="float64")
        whole = Adapter(settings).predictor(implementation, sizes, described, weights)
        batch = whole.put(staged.example(described))
        module, inputs = whole._module, implementation.INPUTS
        expected = whole.outputs(batch)
        parts, passed = cutting.cut(module, batch, inputs, count, channels_last=True), ()
        for part in parts:
            found = part.module(*passed, *[batch[each] for each in part.inputs])
            passed = found if isinstance(found, tuple) else (found,)
            assert all(each.is_contiguous() for each in passed) or part is parts[-1], "messages must be contiguous"
        weights_of = [{id(each) for each in part.module.parameters()} for part in parts]
        assert sum(map(len, weights_of)) == len(set().union(*weights_of)), "a weight is in two parts"
        for output, array in zip(parts[-1].outputs, passed, strict=True):
            np.testing.assert_array_equal(array.detach().numpy(), expected[output], err_msg=f"{name} {output}")


def check_average_of_the_model_loses_the_memory_format():
    # Once it keeps it, `Local` need not restore it.
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    kernel = torch.nn.Parameter(torch.ones(2, 2, 3, 3).to(memory_format=torch.channels_last))
    averaging.average_parameters(iter([kernel]), torch.distributed.group.WORLD)
    torch.distributed.destroy_process_group()
    assert not kernel.is_contiguous(memory_format=torch.channels_last), "PeriodicModelAverager keeps the format now"


def check_recomputation_changes_nothing_but_memory():
    """Batch norms would move their statistics twice without the context of the second pass."""
    effects = network.load(HERE, "recomputation_effects")
    adapters = [
        Adapter(Settings("eager", precision="float64", knobs=KNOBS | {"recomputation": each}))
        for each in ("none", "blocks")
    ]
    effects.check_networks("pytorch", *adapters, names=("resnet18", "vgg16", "bert", "gnmt"))


def check_recomputation_without_effect_is_reported():
    asked = Settings("eager", knobs=KNOBS | {"recomputation": "blocks"})
    assert process.read_back(asked)["recomputation"] == "blocks"
    with mock.patch.object(recomputation, "checkpoint", lambda forward, x, **_: forward(x)):
        assert process.read_back(asked)["recomputation"] == "none"
