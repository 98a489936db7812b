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
        says=r"rename forward\(\) to __call__\(\)",
    ),
    Mistake(
        "a layer of PyTorch in a Sequential",
        2,
        "import torch\nnet = nn.Sequential(nn.Linear(2, 3), torch.nn.Linear(3, 1))\nlist(net.state_dict())",
        backend="torch",
        needs=("torch",),
        says=r"Sequential got a torch Linear, which would not be trained.*from_torch",
    ),
    Mistake(
        "a layer of PyTorch as an attribute",
        2,
        "import torch\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        self.first, self.second = nn.Linear(2, 3), torch.nn.Linear(3, 1)\n"
        "    def __call__(self, x):\n        return self.second(self.first(x))\n"
        "net = Net()\noptimizer = optim.Adam(net)\nlist(net.state_dict())",
        backend="torch",
        needs=("torch",),
        says=r"second is a torch Linear, which would not be trained.*from_torch",
    ),
    Mistake(
        "a tensor where a Parameter is meant",
        2,
        "class Gain(nn.Module):\n"
        "    def __init__(self):\n        self.gain = ops.ones(3)\n"
        "    def __call__(self, x):\n        return ops.multiply(self.gain, x)\n"
        "net = Gain()\noptimizer = optim.SGD(net, lr=0.1)",
        says=r"Gain\.gain is a tensor: make it nn\.Parameter",
    ),
    Mistake(
        "writing into a parameter",
        2,
        "w = Parameter(ops.zeros(3))\nw[0] = 1.0",
        says=r"assign x\.value = ops\.set_item",
    ),
    Mistake(
        "assigning a tensor to the place of a parameter",
        2,
        "net = nn.Linear(2, 1)\nnet.weight = ops.zeros((1, 2))\nlist(net.state_dict())",
        says=r"assign weight\.value = tensor",
    ),
    Mistake(
        "requires_grad, to freeze a parameter",
        2,
        "net = nn.Linear(2, 1)\nnet.weight.requires_grad = False",
        says=r"assign parameter\.trainable = False",
    ),
    Mistake(
        "register_buffer",
        2,
        "class Net(nn.Module):\n    def __init__(self):\n        self.register_buffer('mean', ops.zeros(3))\nNet()",
        says=r"self\.mean = nn\.Buffer\(value\)",
    ),
    Mistake("next of the parameters", 2, f"{NET}next(net.parameters())", says=r"next\(iter\(model\.parameters\(\)\)\)"),
    Mistake(
        "weights of another model",
        2,
        f"{NET}other = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))\n"
        "net.load_state_dict(other.state_dict())",
        says=r"wrong: 0\.weight: has shape \(4, 2\), expected \(3, 2\)",
        not_says="rename",
    ),
]
