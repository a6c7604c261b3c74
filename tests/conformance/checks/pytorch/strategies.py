"""What the PyTorch adapter relies on: several devices."""

import numpy as np
import tomllib
import torch
from torch.distributed.algorithms.model_averaging import utils as averaging

from checks.pytorch.shared import KNOBS, WORKLOADS
from steelyard_worker import network
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.pytorch import cutting, staged
from steelyard_worker.frameworks.pytorch.adapter import Adapter


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
