"""EMB101: an array library imported outside its backend folder."""

import ast
from collections.abc import Iterator

from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.source_file import SourceFile

GUIDE = Fix(Safety.GUIDED, "call the namespace: `from emberharmony import ops`")


class BackendImport(Rule):
    """Finds imports of array libraries in any form: plain, from, aliased, lazy, by name."""

    code = "EMB101"
    name = "backend-import"
    message = "import of {library} outside its backend folder"
    why = (
        "A file that imports one array library runs with that library only. Frontend code calls the namespace, and "
        "only the folder of a backend uses the library behind it. Imports under `if TYPE_CHECKING:` never run and "
        "are clean."
    )
    roles = frozenset({"frontend", "backend"})
    VALID = (
        Example("from emberharmony import ops\n\ny = ops.sin([0.0])\n"),
        Example("from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import numpy as np\n"),
        Example("import numpy as np\n", path="library/backend/numpy/math_ops.py"),
        Example("import numpy as np\n", path="tests/test_math.py"),
        Example("import numpy as np\n", path="library/backend/torch/host.py", settings={"host": ["numpy"]}),
        Example("import numpydoc\nfrom mlxtend import plotting\nfrom . import numpy, torch\n"),
        Example("from library import torch_utils\nimport importlib\n\nm = importlib.import_module('json')\n"),
        Example("from importlib.util import find_spec\n\nhas_torch = find_spec('torch') is not None\n"),
    )
    INVALID = (
        Example("import numpy as np\n"),
        Example("import torch.nn.functional as F\n"),
        Example("from mlx import core as mx\n"),
        Example("import json, numpy, torch\n", count=2),
        Example("from jax.numpy import sin, cos\n"),
        Example("def f():\n    import tensorflow as tf\n\n    return tf\n"),
        Example("try:\n    import cupy\nexcept ImportError:\n    cupy = None\n"),
        Example("import importlib\n\nnp = importlib.import_module('numpy')\n"),
        Example("from importlib import import_module as load\n\nNAME = 'torch'\nnn = load(NAME + '.nn')\n"),
        Example("np = __import__('numpy')\n"),
        Example("import numpy as np\n", path="library/backend/torch/math_ops.py"),
        Example(
            "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import numpy\nelse:\n    import numpy as np\n"
        ),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each import of a foreign library."""
        if not file.mentions_native:
            return
        for library, node in self._imported_names_and_nodes(file):
            if library in file.foreign_libraries and not file.names.is_typing_only(node):
                yield self.finding(file, node, library=library, fix=GUIDE)

    def _imported_names_and_nodes(self, file: SourceFile) -> Iterator[tuple[str, ast.AST]]:
        for node in file.index.nodes(ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0], node if len(node.names) == 1 else alias
        for import_statement in file.index.nodes(ast.ImportFrom):
            if not import_statement.level:
                yield (import_statement.module or "").partition(".")[0], import_statement
        for call in file.index.nodes(ast.Call) if file.names.can_import else ():
            module = file.names.imported_module(call)
            if module is not None:
                yield module.partition(".")[0], call
