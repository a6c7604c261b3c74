"""ONNX Runtime: runs networks that other frameworks have exported."""
