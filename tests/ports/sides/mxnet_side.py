"""The same small network as pytorch_side.py in Gluon."""

import mxnet as mx
from mxnet.gluon import nn
from weights import W

EPS = 1e-5


class Net(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2D(6, 3, padding=1, in_channels=3)
        self.bn = nn.BatchNorm(in_channels=6)
        self.pool = nn.MaxPool2D(2)
        self.up = nn.Dense(16, in_units=6)
        self.norm = nn.LayerNorm(in_channels=16, epsilon=EPS)
        self.down = nn.Dense(5, in_units=16)

    def hybrid_forward(self, F, x):
        x = self.pool(F.relu(self.bn(self.conv(x))))
        x = F.mean(x, axis=(2, 3))
        return self.down(self.norm(F.LeakyReLU(self.up(x), act_type="gelu")))


def model():
    m = Net()
    m.initialize()
    names = {
        "bn.mean": "bn.running_mean",
        "bn.var": "bn.running_var",
        "bn.weight": "bn.gamma",
        "bn.bias": "bn.beta",
        "norm.weight": "norm.gamma",
        "norm.bias": "norm.beta",
    }
    ps = m._collect_params_with_prefix()
    for k, v in W.items():
        ps[names.get(k, k)].set_data(mx.nd.array(v))
    m.hybridize()
    return m
