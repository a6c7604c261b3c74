"""The same small network as pytorch_side.py in MindSpore."""

from mindspore import Tensor, nn, ops
from weights import W

EPS = 1e-5


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, pad_mode="pad", padding=1, has_bias=True)
        self.bn = nn.BatchNorm2d(6)
        self.pool = nn.MaxPool2d(2, 2)
        self.up = nn.Dense(6, 16)
        self.norm = nn.LayerNorm((16,), epsilon=EPS)
        self.down = nn.Dense(16, 5)
        self.gelu = nn.GELU(approximate=False)

    def construct(self, x):
        x = self.pool(ops.relu(self.bn(self.conv(x))))
        x = x.mean((2, 3))
        return self.down(self.norm(self.gelu(self.up(x))))


def model():
    m = Net()
    names = {
        "bn.mean": "bn.moving_mean",
        "bn.var": "bn.moving_variance",
        "bn.weight": "bn.gamma",
        "bn.bias": "bn.beta",
        "norm.weight": "norm.gamma",
        "norm.bias": "norm.beta",
    }
    for k, v in W.items():
        k = names.get(k, k)
        dict(m.parameters_and_names())[k].set_data(Tensor(v))
    return m
