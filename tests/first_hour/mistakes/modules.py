"""Mistakes with modules and parameters."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))\n"

MISTAKES = [
    Mistake(
        "forward in the place of __call__",
        2,
        "class Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.head = nn.Linear(2, 1)\n"
        "    def forward(self, x):\n        return self.head(x)\n"
        "Net()(ops.ones((4, 2)))",
    ),
    Mistake(
        "a layer of PyTorch in a Sequential",
        0,
        "import torch\nnet = nn.Sequential(nn.Linear(2, 3), torch.nn.Linear(3, 1))\nlist(net.state_dict())",
        backend="torch",
        needs=("torch",),
    ),
    Mistake(
        "a layer of PyTorch as an attribute",
        0,
        "import torch\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        self.first, self.second = nn.Linear(2, 3), torch.nn.Linear(3, 1)\n"
        "    def __call__(self, x):\n        return self.second(self.first(x))\n"
        "net = Net()\noptimizer = optim.Adam(net)\nlist(net.state_dict())",
        backend="torch",
        needs=("torch",),
    ),
    Mistake(
        "a tensor where a Parameter is meant",
        1,
        "class Gain(nn.Module):\n"
        "    def __init__(self):\n        self.gain = ops.ones(3)\n"
        "    def __call__(self, x):\n        return ops.multiply(self.gain, x)\n"
        "net = Gain()\noptimizer = optim.SGD(net, lr=0.1)",
    ),
    Mistake("writing into a parameter", 2, "w = Parameter(ops.zeros(3))\nw[0] = 1.0"),
    Mistake(
        "assigning a tensor to the place of a parameter",
        0,
        "net = nn.Linear(2, 1)\nnet.weight = ops.zeros((1, 2))\nlist(net.state_dict())",
    ),
    Mistake("requires_grad, to freeze a parameter", 0, "net = nn.Linear(2, 1)\nnet.weight.requires_grad = False"),
    Mistake(
        "register_buffer",
        0,
        "class Net(nn.Module):\n    def __init__(self):\n        self.register_buffer('mean', ops.zeros(3))\nNet()",
    ),
    Mistake("next of the parameters", 0, f"{NET}next(net.parameters())"),
    Mistake(
        "weights of another model",
        2,
        f"{NET}other = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))\n"
        "net.load_state_dict(other.state_dict())",
    ),
]
