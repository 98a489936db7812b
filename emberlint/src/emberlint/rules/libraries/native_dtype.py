"""EMB106: a dtype of one library."""

from collections.abc import Iterator

from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.method_calls import method_calls
from emberlint.source.native_uses import native_uses
from emberlint.source.rename import dtype_fix
from emberlint.source.source_file import SourceFile
from emberlint.source.type_tests import tested_nodes

CASTS = frozenset({"half", "bfloat16"})
COMMON = frozenset({"double", "float", "long", "int", "short", "bool", "byte"})  # names that other methods have too

OPS = "from emberharmony import ops\n\n"


class NativeDtype(Rule):
    """Finds the dtype objects of array libraries, and casts named after a dtype."""

    code = "EMB106"
    name = "native-dtype"
    message = "{what} is one library's dtype"
    why = (
        "Every other backend rejects a native dtype. `ops.float32` and the other neutral dtypes equal the native "
        "dtypes of the same meaning, and stay valid after a switch of the backend, in default arguments too."
    )
    roles = frozenset({"frontend", "backend"})
    VALID = (
        Example("from emberharmony import ops\n\nx = ops.zeros((2,), dtype=ops.float32)\n"),
        Example("x = float('1.5')\n"),
        Example("def f(x):\n    return x.astype('float32')\n"),
        Example("class Price:\n    def half(self):\n        return 1\n\ny = Price().half()\n"),
    )
    INVALID = (
        Example(
            "import numpy as np\n\ndef f(x, dtype=np.float32):\n    return x\n",
            fixed=OPS + "def f(x, dtype=ops.float32):\n    return x\n",
            unsafe=True,
        ),
        Example("import torch\n\nkind = torch.half\n", fixed=OPS + "kind = ops.float16\n", unsafe=True),
        Example("def f(x):\n    return x.half()\n"),
        Example("from numpy import int64\n\nkind = int64\n", fixed=OPS + "kind = ops.int64\n", unsafe=True),
        Example("import numpy as np\n\ny = np.float32(3)\n"),
        Example("import mlx.core as mx\n\ndef f(x):\n    return x.astype(mx.bfloat16)\n"),
        Example("import numpy as np\n\nkind = np.dtype('f4')\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each dtype and each cast to one."""
        for use in native_uses(file):
            if use.kind == "dtype" and use.node not in tested_nodes(file):
                yield self.finding(file, use.node, what=use.origin, fix=dtype_fix(file, use))
        if file.role.kind != "frontend":
            return
        for call, method in method_calls(file, CASTS | COMMON):
            receiver = call.func.value
            if call.args or call.keywords or (method in COMMON and file.inference.evidence(receiver) is None):
                continue
            yield self.finding(file, call, what=f".{method}()", fix=CAST)


CAST = Fix(Safety.GUIDED, "`ops.cast(x, dtype)` with a neutral dtype", "ops.cast")
