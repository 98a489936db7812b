"""Mistakes of installing, and of choosing a backend."""

from tests.first_hour.mistake import Mistake

MISTAKES = [
    Mistake(
        "pip install emberharmony, which is not on the index yet",
        2,
        "grep -n -i 'not .*on the .*index\\|not .*published\\|not .*on PyPI' $CHECKOUT/README.md",
        shell=True,
        says=r"installed from a checkout",
    ),
    Mistake(
        "a backend that is not installed",
        2,
        "import sys; sys.modules['mlx'] = sys.modules['mlx.core'] = None\n"
        "from emberharmony import ops; ops.set_backend('mlx')",
        fresh=True,
        says=r"pip install \"mlx",
    ),
    Mistake("the long name of a library as the backend", 2, "ops.set_backend('pytorch')", says=r"did you mean 'torch'"),
    Mistake(
        "an example without its arguments",
        2,
        "$PYTHON $CHECKOUT/examples/models/llama.py",
        shell=True,
        says=r"python examples/models/llama\.py FOLDER",
    ),
    Mistake("a device as the backend", 2, "ops.set_backend('cuda')", says=r"that is a device: use ops\.device"),
    Mistake(
        "the module of a library as the backend",
        2,
        "import torch; ops.set_backend(torch)",
        needs=("torch",),
        says=r"named by a string \(numpy, torch",
    ),
    Mistake(
        "a misspelt backend in the environment",
        2,
        "from emberharmony import ops; ops.zeros(2)",
        fresh=True,
        environment={"EMBERHARMONY_BACKEND": "numppy"},
        says=r"did you mean 'numpy'\?.*EMBERHARMONY_BACKEND",
    ),
    Mistake(
        "a misspelt key in the settings file",
        2,
        "mkdir -p emberharmony; echo 'bakend = \"numpy\"' > emberharmony/config.toml;"
        "$PYTHON -c 'from emberharmony import ops; print(ops.get_backend())'",
        shell=True,
        says=r"'bakend' is no setting and is ignored; did you mean 'backend'",
    ),
    Mistake(
        "use_backend without with",
        0,
        "import numpy as np; from emberharmony import ops; ops.set_backend('numpy')\n"
        "ops.use_backend('torch'); print(type(ops.zeros(2)))",
        fresh=True,
        needs=("torch",),
        says="",
    ),
    Mistake(
        "a tensor of the backend before the switch",
        2,
        "with ops.use_backend('torch'): x = ops.ones(3)\nops.multiply(x, ops.ones(3))",
        needs=("torch",),
        says=r"use_backend\(like=x\)",
    ),
]
