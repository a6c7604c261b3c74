"""What the JAX adapter relies on: settings that are read back."""

import itertools
from dataclasses import replace
from unittest import mock

import jax
from jax import lax

from checks.jax.shared import adapter_of
from steelyard_worker.frameworks.jax import convolution
from steelyard_worker.frameworks.jax.recurrence import Recurrence


def check_settings_are_read_back_from_jax():
    """Must be the first check, because XLA reads its environment variables once per process."""
    requested = {"convolution": "matmul", "recurrence": "hoisted", "unroll": "2"}
    found = adapter_of(threads=3, deterministic=True, knobs=requested).applied()
    expected = {"mode": "jit", "device": "cpu", "threads": 3, "precision": "float32", "deterministic": True}
    assert {**found, **expected, **requested} == found, found


def check_every_formulation_is_recognised():
    for formulation in ("auto", "xla", "matmul"):
        applied = adapter_of(knobs={"convolution": formulation}).applied()
        assert applied["convolution"] == formulation, applied
    for formulation, unroll in itertools.product(
        ("auto", "deferred", "checkpointed", "scan", "hoisted"), ("auto", "1", "4")
    ):
        knobs = {"recurrence": formulation, "unroll": unroll}
        applied = adapter_of("no-jit", knobs).applied()
        assert {**applied, **knobs, "mode": "no-jit"} == applied, applied


def check_settings_without_effect_are_reported():
    """A configuration that JAX does not apply, and formulations that are replaced by others."""
    before = jax.config.jax_disable_jit, jax.config.jax_enable_x64
    jax.config.update("jax_disable_jit", False)
    jax.config.update("jax_enable_x64", False)
    with mock.patch.object(jax.config, "update"):
        found = adapter_of("no-jit", precision="float64").applied()
    jax.config.update("jax_disable_jit", before[0])
    jax.config.update("jax_enable_x64", before[1])
    assert (found["mode"], found["precision"]) == ("jit", "float32"), found
    adapter = adapter_of(knobs={"convolution": "matmul", "recurrence": "deferred"})

    def library(x, kernel, strides, padding):
        return lax.conv_general_dilated(
            x, kernel, strides, [(p, p) for p in padding], dimension_numbers=convolution.LAYOUTS
        )

    with mock.patch.object(convolution, "by_matmul", library):
        assert adapter.applied()["convolution"] == "xla"
    with mock.patch.object(Recurrence, "resolved", lambda self, *_: replace(self, formulation="scan")):
        assert adapter.applied()["recurrence"] == "scan"
