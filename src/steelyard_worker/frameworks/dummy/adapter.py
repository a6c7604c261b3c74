"""The scripted framework again under another name; its workloads compute the same with operations in another order."""

from steelyard_worker.frameworks.fake import adapter


class Adapter(adapter.Adapter):
    """Like the fake framework, but another contender."""
