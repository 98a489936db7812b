"""Mistakes of installing, and of choosing a backend."""

from tests.first_hour.mistake import Mistake

MISTAKES = [
    Mistake(
        "pip install emberharmony, which is not on the index yet",
        0,
        "grep -n -i 'not .*on the .*index\\|not .*published\\|not .*on PyPI' $CHECKOUT/README.md",
        shell=True,
    ),
    Mistake(
        "a backend that is not installed",
        1,
        "import sys; sys.modules['mlx'] = sys.modules['mlx.core'] = None\n"
        "from emberharmony import ops; ops.set_backend('mlx')",
        fresh=True,
    ),
    Mistake("the long name of a library as the backend", 2, "ops.set_backend('pytorch')"),
    Mistake("an example without its arguments", 0, "$PYTHON $CHECKOUT/examples/models/llama.py", shell=True),
    Mistake("a device as the backend", 0, "ops.set_backend('cuda')"),
    Mistake("the module of a library as the backend", 2, "import torch; ops.set_backend(torch)", needs=("torch",)),
    Mistake(
        "a misspelt backend in the environment",
        2,
        "from emberharmony import ops; ops.zeros(2)",
        fresh=True,
        environment={"EMBERHARMONY_BACKEND": "numppy"},
    ),
    Mistake(
        "a misspelt key in the settings file",
        0,
        "mkdir -p emberharmony; echo 'bakend = \"numpy\"' > emberharmony/config.toml;"
        "$PYTHON -c 'from emberharmony import ops; print(ops.get_backend())'",
        shell=True,
    ),
    Mistake(
        "use_backend without with",
        0,
        "import numpy as np; from emberharmony import ops; ops.set_backend('numpy')\n"
        "ops.use_backend('torch'); print(type(ops.zeros(2)))",
        fresh=True,
        needs=("torch",),
    ),
    Mistake(
        "a tensor of the backend before the switch",
        2,
        "with ops.use_backend('torch'): x = ops.ones(3)\nops.multiply(x, ops.ones(3))",
        needs=("torch",),
    ),
]
