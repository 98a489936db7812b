"""EMB108: a device named as one library names it."""

import ast
import re
from collections.abc import Iterator

from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.method_calls import method_calls
from emberlint.source.native_uses import native_uses
from emberlint.source.source_file import SourceFile
from emberlint.source.type_tests import tested_nodes

DEVICE = re.compile(r"(cpu|cuda|mps|xpu|gpu|hpu|tpu|meta)(:\d+)?")
MOVES = frozenset({"to", "cuda", "cpu"})
GUIDE = Fix(Safety.GUIDED, "`ops.to_device(x, device)` and `ops.get_available_devices()`", "ops.to_device")


class NativeDevice(Rule):
    """Finds devices, streams and moves of array libraries."""

    code = "EMB108"
    name = "native-device"
    message = "{what} places data on a device as only one library does"
    why = (
        "MLX has one memory for all devices, NumPy has one device, and neither knows the device names of torch. "
        "`ops.to_device` takes the names that the active backend offers."
    )
    roles = frozenset({"frontend", "backend"})
    VALID = (
        Example("from emberharmony import ops\n\nx = ops.to_device(ops.ones(3), 'cpu')\n"),
        Example("def f(letter):\n    return letter.to('anna@example.org')\n"),
        Example("import psutil\n\nload = psutil.cpu()\n"),
        Example("def f(monitor):\n    return monitor.cpu()\n"),
    )
    INVALID = (
        Example("import torch\n\nwhere = torch.device('cuda')\n"),
        Example("import torch\n\nfast = torch.cuda.is_available()\n"),
        Example("import torch\n\nfast = torch.backends.mps.is_available()\n"),
        Example("def f(x):\n    return x.to('cuda:0')\n"),
        Example("def f(x):\n    return x.to(device='mps')\n"),
        Example("def f(x):\n    return x.cuda()\n"),
        Example("import mlx.core as mx\n\nmx.set_default_device(mx.gpu)\n", count=2),
        Example("import jax\n\nall_of_them = jax.devices()\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each device, and each move to one."""
        for use in native_uses(file):
            if use.kind == "device" and use.node not in tested_nodes(file):
                yield self.finding(file, use.node, what=use.origin, fix=GUIDE)
        if file.role.kind == "frontend":
            for call, method in method_calls(file, MOVES):
                if self._is_move(file, call, method):
                    yield self.finding(file, call, what=f".{method}()", fix=GUIDE)

    def _is_move(self, file: SourceFile, call: ast.Call, method: str) -> bool:
        if method == "to":
            device_arguments = [
                *call.args[:1],
                *(keyword.value for keyword in call.keywords if keyword.arg == "device"),
            ]
            device_names = (file.names.constant(argument) for argument in device_arguments)
            return any(name is not None and DEVICE.fullmatch(name) for name in device_names)
        if method == "cuda":
            return True
        # `.cpu()` is a common method name, so it counts only on a known tensor, and not as a part of a conversion.
        parent = file.parent(call)
        is_converted_to_numpy = isinstance(parent, ast.Attribute) and parent.attr == "numpy"
        assert isinstance(call.func, ast.Attribute)
        is_detached = isinstance(call.func.value, ast.Call) and ast.unparse(call.func.value.func).endswith(".detach")
        return not is_converted_to_numpy and (is_detached or file.inference.evidence(call.func.value) is not None)
