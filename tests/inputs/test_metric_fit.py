"""A metric is compared with what a network gives before anything is created."""

from __future__ import annotations

import pytest

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard.inputs.metric_fit import check_metric
from steelyard.statistics import metrics
from steelyard_worker.network import Input, Network

LABEL = Input("label", (), "int32", high=3)


def given(*inputs: Input, **more: object) -> Network:
    return Network((), inputs, 1, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("metric", "network", "message"),
    [
        ("accuracy", given(LABEL), ""),
        ("none", given(), ""),
        ("next-token", given(predictions=lambda outputs, batch: {}), ""),
        ("accuracy", given(), "but the network has no such input"),
        ("accuracy", given(Input("label", (8,), "int32")), "but the network declares label int32 (8,)"),
        ("accuracy", given(Input("label", (), "float32")), "but the network declares label float32 ()"),
        ("next-token", given(LABEL), "a function that returns 'nll', 'tokens' and 'right'"),
        ("regression", given(LABEL), "a function that returns 'predicted' and 'truth'"),
    ],
)
def test_a_metric_that_cannot_be_computed_is_refused(metric: str, network: Network, message: str) -> None:
    if not message:
        check_metric(metric, network, "mine:tiny")
        return
    with pytest.raises(UserError) as refused:
        check_metric(metric, network, "mine:tiny")
    assert message in str(refused.value) and 'metric = "none"' in str(refused.value)


def test_the_metric_of_every_workload_fits() -> None:
    for workload in workloads.find().values():
        for name, network in workload.networks().items():
            check_metric(workload.metric, network, f"{workload.name}:{name}")


def test_every_metric_says_which_arrays_it_needs() -> None:
    assert set(metrics.NEEDED) | {metrics.NONE} == set(metrics.METRICS)
