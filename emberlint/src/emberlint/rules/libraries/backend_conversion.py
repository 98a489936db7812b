"""EMB103: a tensor converted to or from a native array."""

import ast
from collections.abc import Iterator

from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.method_calls import method_calls
from emberlint.source.native_uses import native_uses
from emberlint.source.source_file import SourceFile
from emberlint.source.type_tests import tested_nodes

METHODS = frozenset({"numpy", "__array__", "__dlpack__", "__cuda_array_interface__"})
ADVICE = {
    True: Fix(
        Safety.GUIDED,
        "keep the tensor; convert with `ops.to_numpy(x)` only where the program hands data out",
        "ops.to_numpy",
    ),
    False: Fix(
        Safety.GUIDED, "`ops.convert_to_tensor(x)` creates a tensor of the active backend", "ops.convert_to_tensor"
    ),
}


class BackendConversion(Rule):
    """Finds conversions between tensors and the arrays of one library."""

    code = "EMB103"
    name = "backend-conversion"
    message = "{what} converts between tensors and one library's arrays"
    why = (
        "A conversion copies between devices, removes the tensor from the gradient tape (gradients are silently "
        "lost), may change the dtype (float64 becomes float32 on MLX) and leaves the active backend."
    )
    roles = frozenset({"frontend", "backend"})
    VALID = (
        Example("from emberharmony import ops\n\nx = ops.convert_to_tensor([1.0, 2.0])\nhost = ops.to_numpy(x)\n"),
        Example("from array import array\n\nx = array('d', [1.0])\n"),
        Example("class T:\n    def numpy(self):\n        return 1\n\n    def f(self):\n        return self.numpy()\n"),
        Example("def f(frame):\n    return frame.to_numpy()\n"),
        Example("from hypothesis import extra\n\nstrategy = extra.numpy()\n"),
        Example("import numpy as np\n\nx = np.asarray([1.0])\n", path="library/backend/numpy/tensor_ops.py"),
    )
    INVALID = (
        Example("def f(x):\n    return x.detach().numpy()\n"),
        Example("import numpy as np\n\ndef f(x):\n    return np.asarray(x)\n"),
        Example("import torch\n\nx = torch.from_numpy(y)\n"),
        Example("from torch import tensor\n\nx = tensor([1.0])\n"),
        Example("import torch\n\nx = torch.Tensor([1.0])\n"),
        Example("import mlx.core as mx\n\nx = mx.array([1.0])\n"),
        Example("from torch.utils.dlpack import from_dlpack\n\ndef f(x):\n    return from_dlpack(x)\n"),
        Example("import tensorflow as tf\n\nx = tf.convert_to_tensor([1.0])\n"),
        Example("def f(x):\n    return x.__array__()\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each conversion function and method."""
        for use in native_uses(file):
            if use.kind == "conversion" and use.node not in tested_nodes(file):
                leaves_backend = use.origin.endswith((".asnumpy", "to_dlpack"))
                yield self.finding(file, use.node, what=use.origin, fix=ADVICE[leaves_backend])
        if file.role.kind == "frontend":
            for call, method in method_calls(file, METHODS):
                if not call.args and all(isinstance(keyword.value, ast.Constant) for keyword in call.keywords):
                    yield self.finding(file, call, what=f".{method}()", fix=ADVICE[True])
