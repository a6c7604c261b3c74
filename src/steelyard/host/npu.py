"""Ascend processors."""

import re

from steelyard.host.system import output_of


def names() -> tuple[str, ...]:
    """Return one name for each NPU of `npu-smi info -l`; empty without npu-smi."""
    # Ascend offers no library on the package index.
    found = re.findall(r"NPU ID\s*:\s*(\d+)", output_of("npu-smi", "info", "-l"))
    return tuple(f"Ascend NPU {number}" for number in found)
