"""Names that torch and Keras have."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Linear(2, 1)\n"

MISTAKES = [
    Mistake("nn.Dense", 0, "nn.Dense(10)"),
    Mistake("optim.StepLR", 1, "optim.StepLR(None, 10)"),
    Mistake("set_backend at the top level", 1, "import emberharmony\nemberharmony.set_backend('numpy')", fresh=True),
    Mistake("ops.Tensor", 1, "def f(x: ops.Tensor): return x"),
    Mistake("model.cuda()", 0, f"{NET}net.cuda()"),
    Mistake("model.zero_grad()", 0, f"{NET}net.zero_grad()"),
    Mistake("nn.DataLoader", 0, "nn.DataLoader(None, batch_size=3)"),
    Mistake("nn.CrossEntropy of the losses of Keras", 0, "nn.losses.CategoricalCrossentropy()"),
    Mistake("nn.functional", 0, "nn.functional.relu(ops.ones(2))"),
    Mistake("dim after a first call", 0, "ops.sum(ops.ones((2, 3)), axis=1)\nops.sum(ops.ones((2, 3)), dim=1)"),
]
