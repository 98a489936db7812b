"""The docstrings that `help` shows, of ops, layers and functions; those of other packages stay as they are."""

import inspect
import pydoc
import subprocess
import sys
from types import MethodType, ModuleType
from typing import Any

import pytest

from emberharmony import create_backend, io, nn, ops, optim
from emberharmony.core.docstrings.docstring import Docstring, document
from emberharmony.core.registry import OPS


def test_help_shows_the_shared_descriptions_of_an_op() -> None:
    shown = pydoc.plain(pydoc.render_doc(ops.sum))
    assert "keepdims: whether the reduced axes stay" in shown
    assert shown.index("Args:") < shown.index("Example:")
    assert "keepdims" not in (OPS["sum"].declared.__doc__ or "")


def test_help_shows_the_descriptions_of_a_layer_and_of_its_methods() -> None:
    assert "Default: 'zeros'" in str(inspect.getdoc(nn.Conv2d))
    assert isinstance(nn.Conv2d.__doc__, Docstring)
    assert isinstance(nn.Module.load_state_dict.__doc__, Docstring)
    assert nn.Module.load_state_dict.__doc__.owner == (nn.Module, "load_state_dict")


def test_help_shows_what_trees_losses_and_optimizers_have_in_common() -> None:
    assert "is_leaf: a function that returns whether" in str(inspect.getdoc(ops.tree_map))
    assert "Default: 'mean'." in str(inspect.getdoc(nn.losses.mse))
    assert "params: a module, parameters," in str(inspect.getdoc(optim.AdamW))
    assert "mmap: whether the file is mapped" in str(inspect.getdoc(io.TensorFile))


def test_the_namespaces_of_backends_show_the_same() -> None:
    from emberharmony.xp import numpy as xp

    assert "keepdims: whether" in str(inspect.getdoc(xp.sum))
    assert "keepdims: whether" in str(inspect.getdoc(ops.array_namespace(ops.zeros(1)).sum))


class Foreign:
    """A class of a user, which has no shared texts."""


@pytest.mark.parametrize("value", [Foreign, inspect.getdoc, 3])
def test_what_is_not_of_the_package_stays_as_it_is(value: Any) -> None:
    before = value.__doc__
    document(value)
    assert value.__doc__ is before


def test_a_method_of_a_backend_in_a_module_stays_as_it_is() -> None:
    """The first call of an op binds its name in the modules that import it to a method, before others are loaded."""
    methods = [getattr(create_backend("numpy"), name) for name in OPS]
    bound = [method for method in methods if isinstance(method, MethodType) and type(method.__doc__) is str]
    assert bound
    module = ModuleType("emberharmony.made")
    vars(module).update({f"op{number}": method for number, method in enumerate(bound)})
    document(module)


def test_modules_that_import_each_other_are_not_followed() -> None:
    module = ModuleType("emberharmony.odd")
    module.__dict__.update(itself=module, ops=ops)
    document(module)
    assert module.itself is module


@pytest.mark.fresh_process
def test_a_module_that_another_one_imported_first_is_documented() -> None:
    program = "import inspect, emberharmony.nn.losses as losses; print(inspect.getdoc(losses.mse))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Default: 'mean'." in done.stdout
