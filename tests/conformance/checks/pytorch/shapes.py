"""What the PyTorch adapter relies on: compiling for several shapes."""

from dataclasses import replace
from unittest import mock

import torch

from checks.pytorch.shared import KNOBS
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.pytorch import settings as process


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
