"""Times of calls, of a gradient and of an import."""

import importlib.util
from pathlib import Path

import dispatch

CALLS = ["sin(x)", "add(x, y)", "matmul(x, y)", "sum(x, axis=0)"]
REPEATED = 100
"""How many calls one time covers; the curves show the time of all of them."""


class Calls:
    """A hundred calls through `ops` and, as a measure of the machine, of the native function."""

    params = ([name for name, module in dispatch.MODULES.items() if dispatch.installed(module)], CALLS)
    param_names = ("backend", "call")
    rounds = 1

    def setup(self, backend: str, call: str) -> None:
        """Makes the backend active and runs the statements, so that the ops are direct."""
        self.native, self.ours = (
            dispatch.function(dispatch.statement_of(call, name), dispatch.setup(backend, name))
            for name in ("native", "ours")
        )
        self.native(REPEATED)
        self.ours(REPEATED)

    def time_native(self, backend: str, call: str) -> None:
        """Times the native calls."""
        self.native(REPEATED)

    def time_ours(self, backend: str, call: str) -> None:
        """Times the calls through `ops`."""
        self.ours(REPEATED)


class Gradients:
    """Value and gradient of the small multilayer perceptron."""

    params = Calls.params[0]
    param_names = ("backend",)
    rounds = 1

    def setup(self, backend: str) -> None:
        """Makes the backend active and takes the gradient once."""
        import gradients

        arrays = gradients.mlp_parameters(*gradients.SIZES["mlp small"][1])
        self.call = gradients.ours(backend, gradients.mlp_ops, arrays, 2)
        self.call()

    def time_value_and_grad(self, backend: str) -> None:
        """Times one call of `ops.value_and_grad`."""
        self.call()


class Import:
    """The import, in a fresh interpreter, beside that of NumPy."""

    def timeraw_numpy(self) -> str:
        """Times `import numpy`."""
        return "import numpy"

    def timeraw_ops(self) -> str:
        """Times `import emberharmony.ops`, from the folder that this process imports."""
        found = importlib.util.find_spec("emberharmony")
        assert found is not None
        assert found.origin is not None
        return f"import sys; sys.path.insert(0, {str(Path(found.origin).parents[1])!r}); import emberharmony.ops"
