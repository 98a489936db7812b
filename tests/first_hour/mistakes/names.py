"""Names that torch and Keras have."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Linear(2, 1)\n"

MISTAKES = [
    Mistake("nn.Dense", 2, "nn.Dense(10)", says=r"use nn\.Linear\(in_features"),
    Mistake(
        "optim.StepLR",
        2,
        "optim.StepLR(None, 10)",
        says=r"schedules\.step\(0\.1, step_size=30 \* len\(batches\)\)\); schedules count steps",
    ),
    Mistake(
        "set_backend at the top level",
        2,
        "import emberharmony\nemberharmony.set_backend('numpy')",
        fresh=True,
        says=r"did you mean ops\.set_backend",
    ),
    Mistake("ops.Tensor", 2, "def f(x: ops.Tensor): return x", says=r"emberharmony\.Tensor"),
    Mistake("model.cuda()", 2, f"{NET}net.cuda()", says=r"model\.to\(device='cuda:0'\)"),
    Mistake("model.zero_grad()", 2, f"{NET}net.zero_grad()", says=r"ops\.zero_grad\(model\)"),
    Mistake("nn.DataLoader", 2, "nn.DataLoader(None, batch_size=3)", says=r"nn\.data\.batches"),
    Mistake(
        "nn.CrossEntropy of the losses of Keras",
        2,
        "nn.losses.CategoricalCrossentropy()",
        says=r"nn\.losses\.cross_entropy",
    ),
    Mistake("nn.functional", 2, "nn.functional.relu(ops.ones(2))", says=r"functions are in ops|did you mean ops\.relu"),
    Mistake(
        "dim after a first call",
        2,
        "ops.sum(ops.ones((2, 3)), axis=1)\nops.sum(ops.ones((2, 3)), dim=1)",
        says=r"use axis=",
    ),
]
