"""The tables of all frameworks: names that were seen in traces belong to the class that computes them."""

from __future__ import annotations

import pytest
import tomllib

from steelyard.catalog import frameworks
from steelyard.profiles.classes import table

SEEN = {
    "pytorch": {
        "aten::mkldnn_convolution": "convolution, forward",
        "aten::convolution_backward": "convolution, backward",
        "aten::convolution": "dispatch",
        "autograd::engine::evaluate_function: ReluBackward0": "dispatch",
        "aten::native_batch_norm": "normalisation",
        "aten::native_batch_norm_backward": "normalisation",
        "aten::addmm": "matrix product",
        "aten::threshold_backward": "elementwise",
        "aten::t": "dispatch",
        "aten::transpose": "dispatch",
        "aten::add_": "elementwise",
        "aten::fill_": "copies and layout",
        "aten::copy_": "copies and layout",
        "aten::_fused_sgd_": "optimizer",
        "Optimizer.step#SGD.step": "dispatch",
        "aten::max_pool2d_with_indices_backward": "pooling",
        "aten::max_pool2d": "dispatch",
        "aten::_log_softmax": "reduction and loss",
        "aten::nll_loss_forward": "reduction and loss",
        "aten::mean": "reduction and loss",
        "aten::mkldnn_rnn_layer_backward": "recurrent",
        "aten::embedding_dense_backward": "gather and scatter",
        "aten::embedding_backward": "dispatch",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": "input pipeline",
        "aten::_foreach_add_": "optimizer",
        "aten::mul": "elementwise",
        "aten::empty_strided": "dispatch",
        "gloo:all_reduce": "exchange between ranks",
        "c10d::allreduce_": "exchange between ranks",
        "torch::distributed::reducer::mul_out": "exchange between ranks",
        "DistributedDataParallel.forward": "dispatch",
    },
    "tensorflow": {
        "_MklNativeConv2DBackpropInput": "convolution, backward to data",
        "_MklNativeConv2DBackpropFilter": "convolution, backward to weights",
        "_MklNativeConv2D": "convolution, forward",
        "_MklNativeFusedBatchNormV3": "normalisation",
        "_FusedMatMul": "matrix product",
        "ResourceApplyKerasMomentum": "optimizer",
        "ExecutorState::Process": "dispatch",
        "ReadVariableOp": "dispatch",
        "PyFunc": "input pipeline",
        "MaxPoolGrad": "pooling",
        "SparseSoftmaxCrossEntropyWithLogits": "reduction and loss",
        "BiasAddGrad": "reduction and loss",
        "ResourceGather": "gather and scatter",
        "ReluGrad": "elementwise",
        "AddV2": "elementwise",
        "AddN": "reduction and loss",
        "Pad": "copies and layout",
        "_MklNativeTranspose": "copies and layout",
        "While": "dispatch",
        "Select": "elementwise",
        "Less": "dispatch",
        "CollectiveReduceV2": "exchange between ranks",
    },
    "mindspore": {
        "Conv2DBackpropInput": "convolution, backward to data",
        "Conv2DBackpropFilter": "convolution, backward to weights",
        "Conv2D": "convolution, forward",
        "BatchNormGrad": "normalisation",
        "LSTMGrad": "recurrent",
        "ApplyMomentum": "optimizer",
        "MatMul": "matrix product",
        "MaxPoolGrad": "pooling",
        "Gather": "gather and scatter",
        "LogSoftmax": "reduction and loss",
        "ReduceMean": "reduction and loss",
        "Transpose": "copies and layout",
        "ReluGrad": "elementwise",
        "AssignAdd": "optimizer",
        "Mul": "elementwise",
        "rule-Momentum/AllReduce": "exchange between ranks",
        "rule-Momentum/ApplyMomentum": "optimizer",
    },
    "mxnet": {
        "Convolution": "convolution, forward",
        "_backward_Convolution": "convolution, backward",
        "_backward_RNN": "recurrent",
        "FullyConnected": "matrix product",
        "BatchNorm": "normalisation",
        "_backward_Pooling": "pooling",
        "sgd_mom_update": "optimizer",
        "multi_sgd_mom_update": "optimizer",
        "adam_update": "optimizer",
        "Embedding": "gather and scatter",
        "add_n": "reduction and loss",
        "log_softmax": "reduction and loss",
        "transpose": "copies and layout",
        "_zeros_without_dtype": "copies and layout",
        "DeleteVariable": "dispatch",
        "_backward_Activation": "elementwise",
        "elemwise_add": "elementwise",
        "_mul_scalar": "elementwise",
        "pick": "reduction and loss",
        "KVStoreDistDefaultStoragePushPull": "exchange between ranks",
    },
}


@pytest.mark.parametrize(
    ("framework", "name", "kind"), [(f, *pair) for f, pairs in SEEN.items() for pair in pairs.items()]
)
def test_an_operation_that_was_seen_has_its_class(framework: str, name: str, kind: str) -> None:
    rules = tomllib.loads((frameworks.BUILT_IN / framework / frameworks.OPERATIONS).read_text())
    assert table(rules["operations"]).class_of(name) == kind


def test_what_no_rule_matches_has_no_class() -> None:
    assert table([{"class": "pooling", "names": ["pool"]}]).class_of("aten::roll") == ""


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ({"class": "poling", "names": ["pool"]}, "there is no class 'poling'"),
        ({"class": "pooling", "names": ["(pool"]}, r"'\(pool' is no regular expression"),
    ],
)
def test_a_wrong_table_is_refused(rule: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        table([rule])
