"""TensorFlow: adapter, layers and update rules."""
