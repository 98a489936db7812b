"""The example programs that the demo runs."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load_example(name: str) -> ModuleType:
    """Returns an example as a module, from the wheel or from the checkout.

    It is in `sys.modules`, where `torch.compile` looks for the module of a function.

    Args:
        name: its path below `examples/`, without the ending.
    """
    module_name = f"examples.{name.replace('/', '.')}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    package = Path(__file__).resolve().parents[1]
    candidate_paths = [folder / "examples" / f"{name}.py" for folder in (package, package.parent)]
    path = next(candidate for candidate in candidate_paths if candidate.exists())
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[module_name] = module
    return module
