"""EMB107: random numbers of one library."""

from collections.abc import Iterator

from emberlint.findings import Finding
from emberlint.rule import Example, Rule
from emberlint.source.native_uses import native_uses
from emberlint.source.rename import replacement_fix
from emberlint.source.source_file import SourceFile
from emberlint.source.type_tests import tested_nodes

OPS = "from emberharmony import ops\n\n"


class NativeRandom(Rule):
    """Finds random functions, generators and seeds of array libraries."""

    code = "EMB107"
    name = "native-random"
    message = "{what} draws from one library's random state"
    why = (
        "Each library has its own generators and seeds, so a seed set for one library has no effect on another. "
        "`ops.random.seed(n)` seeds the active backend; `ops.random.Generator` gives the same numbers on every "
        "backend."
    )
    roles = frozenset({"frontend", "backend"})
    VALID = (
        Example("from emberharmony import ops\n\nops.random.seed(0)\nx = ops.random.normal((3,))\n"),
        Example("import random\n\nrandom.seed(0)\n"),
        Example("import jax\n\nsame = jax.random.key_impl(1) == jax.random.key_impl(2)\n"),
        Example("from torch import distributions\n\nx = distributions.kl_divergence(1, 2)\n"),
    )
    INVALID = (
        Example("import numpy as np\n\nx = np.random.rand(3)\n"),
        Example("from numpy.random import default_rng\n\nrng = default_rng(0)\n"),
        Example("import torch\n\nx = torch.randn(3)\n"),
        Example("import torch\n\ntorch.manual_seed(0)\n", fixed=OPS + "ops.random.seed(0)\n", unsafe=True),
        Example("import torch\n\ntorch.cuda.manual_seed_all(0)\n"),
        Example("import mlx.core as mx\n\nx = mx.random.normal((3,))\n"),
        Example("from jax import random\n\nkey = random.key(0)\n"),
        Example("import torch\n\ng = torch.Generator()\n"),
        Example("from torch.distributions import Normal\n\nx = Normal(0.0, 1.0).sample((3,))\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each use of a native source of random numbers."""
        for use in native_uses(file):
            if use.kind == "random" and use.node not in tested_nodes(file):
                yield self.finding(file, use.node, what=use.origin, fix=replacement_fix(file, use))
