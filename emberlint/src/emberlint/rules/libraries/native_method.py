"""EMB109: a method that the tensors of some libraries lack."""

import ast
from collections.abc import Iterator

from emberlint.config.tiers import Tier
from emberlint.findings import Finding, Fix, Safety
from emberlint.knowledge.methods import (
    OF_TORCH,
    TENSORS,
    is_number,
    is_torch_receiver,
    libraries_by_method,
    library_tie_reason,
    op_of,
    signatures_by_library,
)
from emberlint.rule import Example, Rule
from emberlint.rules.libraries.backend_conversion import METHODS as CONVERSIONS
from emberlint.rules.libraries.native_device import MOVES
from emberlint.rules.libraries.native_dtype import CASTS, COMMON
from emberlint.source.method_calls import MethodCall, is_of_imported_class, method_calls
from emberlint.source.source_file import Evidence, SourceFile

OPS = "from emberharmony import ops\n\n"
REPORTED = CONVERSIONS | MOVES | CASTS | COMMON  # methods that other rules report
# Methods of OF_TORCH that nothing but a tensor has, also in a file that does not import PyTorch.
UNMISTAKABLE = frozenset({"index_select", "log_softmax", "masked_fill", "unsqueeze"})


class NativeMethod(Rule):
    """Finds methods of tensors that some libraries lack, such as `.unsqueeze()`, `.astype()` and `.sum(dim=0)`."""

    code = "EMB109"
    name = "native-method"
    message = "{what}: call `ops.{op}`"
    why = (
        "The libraries have different methods, with different names of arguments and different defaults: the tensors "
        "of PyTorch have no `astype`, those of NumPy no `unsqueeze`, and `std()` divides by n - 1 in PyTorch only. "
        "So the call ends with an AttributeError, or with other numbers, on another backend. An op means the same on "
        "every backend. Methods that all libraries have, such as `x.sum(axis=0)` and `x.reshape(-1)`, are no finding."
    )
    min_tier = Tier.C
    VALID = (
        Example(OPS + "y = ops.expand_dims(ops.ones(3), -1)\n"),
        Example(OPS + "x = ops.ones((2, 3))\ny = x.sum(axis=0), x.reshape(-1), x.mean(), x.max(), x.flatten()\n"),
        Example("def f(frame):\n    return frame.astype('int64').clip(0, 1)\n"),
        Example("class Axes:\n    def permute(self, order):\n        return order\n\ny = Axes().permute(1)\n"),
        Example("class A:\n    def unsqueeze(self, n):\n        return self\n\ndef f(x):\n    return x.unsqueeze(0)\n"),
        Example("import torch\nfrom lines import Line\n\ndef f(a: Line):\n    return a.dim(), Line(a).detach()\n"),
        Example("def f(group):\n    return group.permute((1, 0))\n"),
        Example("import numpy as np\n\ny = np.ones(3).view('uint8')\n"),
    )  # fmt: skip
    INVALID = (
        Example(OPS + "y = ops.ones(3).unsqueeze(-1)\n"),
        Example(OPS + "x = ops.ones((2, 3))\ny = x.sum(dim=0)\n"),
        Example(OPS + "x = ops.ones((2, 3))\ny = x.permute(1, 0), x.masked_fill(x, 0.0)\n", count=2),
        Example(OPS + "x = ops.ones((2, 3))\ny = x.astype('float64'), x.std()\n", count=2),
        Example("import torch\n\ndef f(x):\n    return x.unsqueeze(-1)\n"),
        Example("import torch\n\ndef f(x: torch.Tensor):\n    return x.transpose(0, 1)\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each call of a method that is tied to some libraries."""
        for call, method in method_calls(file, frozenset(libraries_by_method()) - REPORTED):
            positional_count = 1 if any(isinstance(arg, ast.Starred) for arg in call.args) else len(call.args)
            keyword_names = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
            tie_reason = library_tie_reason(method, positional_count, keyword_names)
            evidence = self._evidence(file, call, method) if tie_reason else None
            if evidence is not None:
                named_libraries = [library for library in TENSORS if f"`{library}." in evidence.reason]
                library = named_libraries[0] if named_libraries else "torch"
                if library not in signatures_by_library(method) and library in libraries_by_method()[method]:
                    continue  # NumPy's `view` has no equal op
                op = op_of(method, positional_count, keyword_names, library)
                fix = Fix(Safety.GUIDED, f"call `ops.{op}`", f"ops.{op}")
                yield self.finding(
                    file, call, tier=evidence.tier, reason=evidence.reason, fix=fix, what=tie_reason, op=op
                )

    def _evidence(self, file: SourceFile, call: MethodCall, method: str) -> Evidence | None:
        """Returns why a method is one of a tensor, or None."""
        receiver_evidence = file.inference.evidence(call.func.value)
        if receiver_evidence is not None or not _is_of_torch(file, call, method):
            return receiver_evidence
        is_defined_here = any(node.name == method for node in file.index.nodes(ast.FunctionDef))
        if is_defined_here or is_of_imported_class(file, call.func.value):
            return None
        return Evidence(Tier.C, f"only tensors of PyTorch have `.{method}()` with such arguments")


def _is_of_torch(file: SourceFile, call: MethodCall, method: str) -> bool:
    """Returns whether the name of a method and its arguments tell that its receiver is a tensor of PyTorch."""
    if method in UNMISTAKABLE:
        return True
    imported_packages = file.compute_once(_imported_packages)
    if "torch" not in imported_packages:
        return False
    arguments, is_only_torch = call.args, imported_packages.isdisjoint({"numpy", "mlx", "jax", "pandas"})
    if is_torch_receiver(method, call):
        return True
    if method in ("dim", "size"):
        return not call.keywords and not arguments and (is_only_torch or method == "dim")
    if method == "numel":  # shapes have the method too
        return "shape" not in file.segment(call.func.value) and not file.inference.is_shape(call.func.value)
    if method == "repeat":
        return len(arguments) > (1 if is_only_torch else 2) or any(
            isinstance(argument, ast.Starred) for argument in arguments
        )
    if method == "transpose":
        return len(arguments) == 2 and all(map(is_number, arguments)) and is_only_torch
    return method in OF_TORCH and method not in ("softmax", "tile")


def _imported_packages(file: SourceFile) -> frozenset[str]:
    """Returns the packages that the imports of a file are from."""
    imported_origins = (
        binding.origin for name_bindings in file.names.root.bindings.values() for binding in name_bindings
    )
    return frozenset(f"{origin}".partition(".")[0] for origin in imported_origins)
