"""EMB102: a name of an array library used in frontend code."""

from collections.abc import Iterator

from emberlint.findings import Finding
from emberlint.rule import Example, Rule
from emberlint.source.native_uses import native_uses
from emberlint.source.rename import replacement_fix
from emberlint.source.source_file import SourceFile
from emberlint.source.type_tests import tested_nodes

OPS = "from emberharmony import ops\n\n"


class BackendUse(Rule):
    """Finds calls, attributes, base classes, decorators and constants of a name bound to an array library."""

    code = "EMB102"
    name = "backend-use"
    message = "{origin} ties this code to {library}"
    why = (
        "A native call works only with the arrays of that library, and follows its own promotion, defaults and "
        "errors. The same op of the namespace means the same on every backend. Conversions, type tests, dtypes, "
        "random numbers, devices and methods have rules of their own (EMB103 to EMB109)."
    )
    roles = frozenset({"frontend", "backend"})
    VALID = (
        Example("from emberharmony import ops\n\ny = ops.sin(ops.linspace(0.0, 1.0, 5))\n"),
        Example("def mean(np):\n    return np.mean([1, 2])\n"),
        Example("import numpy as np\n\nxp = np\n"),
        Example("import math\n\nnp = math\ny = np.sin(1.0)\n"),
        Example("for np in range(3):\n    print(np.real)\n"),
        Example(
            "class A:\n    def __init__(self, np):\n        self.np = np\n\n    def f(self):\n        return self.np\n"
        ),
        Example(
            "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import torch\n\n"
            "def f(x: 'torch.Tensor') -> None:\n    pass\n"
        ),
        Example("import torch\n\ny = torch.sin(torch.ones(3))\n", path="library/backend/torch/math_ops.py"),
    )
    INVALID = (
        Example(
            "import numpy as np\n\nclass Best:\n    def __init__(self):\n        self.score = np.inf\n\n"
            "    def is_better(self, score):\n        return score < self.score\n",
            fixed=OPS + "class Best:\n    def __init__(self):\n        self.score = ops.inf\n\n"
            "    def is_better(self, score):\n        return score < self.score\n",
            unsafe=True,
        ),
        Example("import numpy as np\n\ny = np.sin(1.0)\n", fixed=OPS + "y = ops.sin(1.0)\n", unsafe=True),
        Example("import numpy as np\n\ntau = 2 * np.pi\n", fixed=OPS + "tau = 2 * ops.pi\n", unsafe=True),
        Example(
            "import torch.nn.functional as F\n\ndef f(x):\n    return F.relu(x)\n",
            fixed=OPS + "def f(x):\n    return ops.relu(x)\n",
            unsafe=True,
        ),
        Example(
            "from mlx import core as mx\n\ny = mx.zeros((2, 3))\n", fixed=OPS + "y = ops.zeros((2, 3))\n", unsafe=True
        ),
        Example(
            "from numpy.linalg import norm as length\n\ndef f(x):\n    return length(x)\n",
            fixed=OPS + "def f(x):\n    return ops.norm(x)\n",
            unsafe=True,
        ),
        Example("import torch\n\nclass Net(torch.nn.Module):\n    pass\n"),
        Example("import torch\n\n@torch.no_grad()\ndef f(x):\n    return x\n"),
        Example(
            "import numpy\n\nxp = numpy\ny = xp.cos(0.0)\n",
            fixed="import numpy\n" + OPS + "xp = numpy\ny = ops.cos(0.0)\n",
            unsafe=True,
        ),
        Example(
            "import numpy as np\n\nclass A:\n    xp = np\n\n    def f(self, x):\n        return self.xp.tanh(x)\n",
            fixed="import numpy as np\n"
            + OPS
            + "class A:\n    xp = np\n\n    def f(self, x):\n        return ops.tanh(x)\n",
            unsafe=True,
        ),
        Example("import numpy as np\n\ndef f(name, x):\n    return getattr(np, 'sinh')(x)\n"),
        Example(
            "def f(x):\n    import jax.numpy as jnp\n\n    return jnp.dot(x, x)\n",
            fixed=OPS + "def f(x):\n    import jax.numpy as jnp\n\n    return ops.dot(x, x)\n",
            unsafe=True,
        ),
        Example(
            "import importlib\n\nnp = importlib.import_module('numpy')\ny = np.exp(0.0)\n",
            fixed="import importlib\n" + OPS + "np = importlib.import_module('numpy')\ny = ops.exp(0.0)\n",
            unsafe=True,
        ),
        Example("import torch\n\ndef f(parts):\n    return torch.stack(parts, dim=1)\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each use that no more specific rule reports."""
        for use in native_uses(file):
            if use.kind == "use" and use.node not in tested_nodes(file):
                library = use.origin.partition(".")[0]
                yield self.finding(file, use.node, origin=use.origin, library=library, fix=replacement_fix(file, use))
