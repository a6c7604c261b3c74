"""Modes and knobs that a workload cannot have, and knobs that set a group apart from the same group without them."""

from __future__ import annotations

from steelyard.plan import resolve
from steelyard.plan.options import Options


def test_with_dropout_a_network_is_compared_with_itself_only() -> None:
    names = ("pytorch", "tensorflow", "jax", "mindspore", "mxnet")
    plan = resolve.plan(Options(workloads=("vgg16:tiny",), frameworks=names, knobs=("dropout=off,on",)))
    off, on = plan.groups
    assert [group.name for group in plan.groups] == ["vgg16:tiny", "vgg16:tiny,dropout=on"]
    assert [group.title for group in plan.groups] == ["VGG-16", "VGG-16, dropout on"]
    assert {each.case.settings.knobs["dropout"] for each in off.variants} == {"off"}
    assert {each.case.settings.knobs["dropout"] for each in on.variants} == {"on"}
    assert [each.case.framework for each in on.variants] == list(names)
    assert (off.apart, on.apart[:41]) == ("", "Dropout's masks are the framework's own, ")


def test_a_group_with_dropout_alone_says_so_in_its_name() -> None:
    plan = resolve.plan(Options(workloads=("vgg16:tiny",), frameworks=("pytorch",), knobs=("dropout=on",)))
    assert [(group.name, group.title) for group in plan.groups] == [("vgg16:tiny,dropout=on", "VGG-16, dropout on")]


def test_dropout_is_skipped_where_a_network_has_none_and_where_nothing_is_trained() -> None:
    plan = resolve.plan(
        Options(workloads=("vgg16:tiny", "resnet18:tiny"), frameworks=("pytorch",), knobs=("dropout=on",))
    )
    assert [group.name for group in plan.groups] == ["vgg16:tiny,dropout=on"]
    assert [(each.group, each.reason) for each in plan.skipped] == [
        (
            "resnet18:tiny",
            "resnet18:tiny has no dropout to turn on: it was not published with any, or its dropout is not built.",
        )
    ]
    both = Options(workloads=("vgg16:tiny",), frameworks=("pytorch",), knobs=("dropout=off,on",), tasks=("inference",))
    (skipped,) = resolve.plan(both).skipped
    assert skipped.reason == "PyTorch cannot run with dropout = on: dropout acts in training only."


def test_fit_is_skipped_where_it_would_train_otherwise() -> None:
    fit = {"frameworks": ("tensorflow",), "modes": ("tensorflow=graph,fit",)}
    reasons = {
        workload: [each.reason for each in resolve.plan(Options(workloads=(workload,), **fit, **more)).skipped]
        for workload, more in {
            "resnet18:tiny": {},
            "lstm-imdb:tiny": {},
            "vgg16:tiny": {"optimizers": ("sgd",)},
            "resnet50:tiny": {"tasks": ("inference",)},
        }.items()
    }
    assert reasons["resnet18:tiny"] == []
    (embedding,), (decay,), (inference,) = (reasons[name] for name in ("lstm-imdb:tiny", "vgg16:tiny", "resnet50:tiny"))
    assert embedding.startswith(
        "TensorFlow cannot run lstm-imdb in mode fit: Keras' optimizers get the gradients of an emb"
    )
    assert decay.startswith(
        "TensorFlow cannot run in mode fit here: the weight decay of keras.optimizers is another one"
    )
    assert inference.startswith("TensorFlow cannot run in mode fit here: fit trains;")
