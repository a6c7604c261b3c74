"""DataParallel uses the CPUs that it is given as one: exit code 7. Once it divides a batch between them: 0."""

import sys

import torch

CPUS = [torch.device("cpu", 0), torch.device("cpu", 1)]

shares = []
layer = torch.nn.Linear(2, 2)
layer.register_forward_hook(lambda *values: shares.append(len(values[-1])))
module = layer
try:
    module = torch.nn.DataParallel(layer, device_ids=CPUS)
    module(torch.ones(4, 2))
except (AssertionError, RuntimeError, ValueError) as error:  # on a machine with GPUs it refuses CPUs
    print("DataParallel refuses CPUs:", error)
    sys.exit(7)
print("samples that each copy got:", shares, "devices:", module.device_ids)
sys.exit(0 if shares == [2, 2] else 7)
