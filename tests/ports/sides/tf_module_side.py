"""The same small network as pytorch_side.py in modules of TensorFlow."""

import tensorflow as tf
from weights import W

EPS = 1e-5


class Dense(tf.Module):
    def __init__(self, name):
        super().__init__()
        self.w = tf.Variable(W[name + ".weight"].T)
        self.b = tf.Variable(W[name + ".bias"])

    @tf.function
    def __call__(self, x):
        return x @ self.w + self.b


class Norm(tf.Module):
    def __init__(self):
        super().__init__()
        self.gamma = tf.Variable(W["norm.weight"])
        self.beta = tf.Variable(W["norm.bias"])

    def __call__(self, x):
        m, v = tf.nn.moments(x, [-1], keepdims=True)
        return (x - m) / tf.sqrt(v + EPS) * self.gamma + self.beta


class Conv(tf.Module):
    def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(W["conv.weight"].transpose(2, 3, 1, 0))
        self.bias = tf.Variable(W["conv.bias"])

    def __call__(self, x):
        return tf.nn.conv2d(x, self.kernel, 1, "SAME") + self.bias


class BN(tf.Module):
    def __init__(self):
        super().__init__()
        self.gamma, self.beta = tf.Variable(W["bn.weight"]), tf.Variable(W["bn.bias"])
        self.mean, self.variance = tf.Variable(W["bn.mean"], trainable=False), tf.Variable(W["bn.var"], trainable=False)

    def __call__(self, x, is_training):
        return tf.nn.batch_normalization(x, self.mean, self.variance, self.beta, self.gamma, 1e-5)


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self._layers_of = [Conv(), BN()]
        self.rest = {"up": Dense("up"), "norm": Norm(), "down": Dense("down")}

    @tf.function
    def __call__(self, x, is_training=False):
        x = tf.transpose(x, (0, 2, 3, 1))
        x = self._layers_of[1](self._layers_of[0](x), is_training)
        x = tf.nn.max_pool2d(tf.nn.relu(x), 2, 2, "VALID")
        x = tf.reduce_mean(x, (1, 2))
        return self.rest["down"](self.rest["norm"](tf.nn.gelu(self.rest["up"](x))))


def model():
    return Net()
