"""EMB104: code that tests for a native type."""

from collections.abc import Iterator

from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.native_uses import native_uses
from emberlint.source.source_file import SourceFile
from emberlint.source.type_tests import tested_nodes, type_tests

GUIDE = Fix(Safety.GUIDED, "`ops.is_tensor(x)` is true for the tensors of every backend", "ops.is_tensor")


class BackendIsinstance(Rule):
    """Finds isinstance, type comparisons, telltale attributes, class patterns and dispatch on native types."""

    code = "EMB104"
    name = "backend-isinstance"
    message = "this tests whether a value belongs to {library} ({what})"
    why = (
        "A test for a native type is a hidden test for a backend: on another backend the code silently takes the "
        "other branch. Use `ops.is_tensor`, or let the op convert its argument."
    )
    roles = frozenset({"frontend", "backend"})
    VALID = (
        Example("from emberharmony import ops\n\ndef f(x):\n    return ops.is_tensor(x)\n"),
        Example("def f(x):\n    return isinstance(x, (int, float, list))\n"),
        Example("def f(x):\n    return hasattr(x, 'shape') and hasattr(x, 'dtype')\n"),
        Example("def f(x):\n    return type(x) is dict\n"),
        Example("import keras\n\nhas = hasattr(keras, 'numpy')\n"),
        Example("def f(x):\n    match x:\n        case list():\n            return 1\n"),
        Example("def isinstance(a, b):\n    return True\n"),
    )
    INVALID = (
        Example("import numpy as np\n\ndef f(x):\n    return isinstance(x, np.ndarray)\n"),
        Example("import torch\n\ndef f(x):\n    return isinstance(x, (list, torch.Tensor))\n"),
        Example("import torch\n\ndef f(x):\n    return isinstance(x, int | torch.Tensor)\n"),
        Example("import mlx.core as mx\n\ndef f(x):\n    return type(x) is mx.array\n"),
        Example("import mlx.core as mx\n\ndef f(x):\n    return x.__class__ == mx.array\n"),
        Example("def f(x):\n    return hasattr(x, 'numpy')\n"),
        Example("def f(x):\n    return type(x).__module__.startswith('torch')\n"),
        Example("def f(x):\n    return 'ndarray' == type(x).__name__\n"),
        Example("import numpy as np\n\ndef f(x):\n    match x:\n        case np.ndarray():\n            return 1\n"),
        Example(
            "from functools import singledispatch\nimport numpy as np\n\n@singledispatch\ndef f(x):\n    pass\n\n"
            "@f.register(np.ndarray)\ndef _(x):\n    pass\n"
        ),
        Example(
            "from functools import singledispatch\nimport torch\n\n@singledispatch\ndef f(x):\n    pass\n\n"
            "@f.register\ndef _(x: torch.Tensor):\n    pass\n"
        ),
        Example("import torch\n\ndef f(x):\n    return torch.is_tensor(x)\n"),
        Example("import numpy as np\n\nKINDS = (np.ndarray, list)\n\ndef f(x):\n    return isinstance(x, KINDS)\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each test of a type."""
        if file.foreign_libraries:
            for node, type_name in type_tests(file):
                yield self._make_finding(file, node, type_name)
        for use in native_uses(file):
            if use.kind == "type" and use.node not in tested_nodes(file):
                yield self._make_finding(file, use.node, use.origin)

    def _make_finding(self, file: SourceFile, node: object, what: str) -> Finding:
        library = what.strip("'").partition(".")[0]
        library_text = library if library in file.settings.backends else "a library"
        return self.finding(file, node, library=library_text, what=what, fix=GUIDE)  # type: ignore[arg-type]
