"""What the tables of hints advise exists."""

import inspect
import re

import emberharmony
from emberharmony import io, nn, ops, optim
from emberharmony.core.display import raised
from emberharmony.core.names import elsewhere, relatives, spellings
from emberharmony.nn.training import arguments
from emberharmony.transforms import parameterless

SPACES = {"io": io, "nn": nn, "ops": ops, "optim": optim, "emberharmony": emberharmony}
NAME = re.compile(r"(?<![\w.])(io|nn|ops|optim|emberharmony)((?:\.[A-Za-z_]\w*)+)(?![\w{])")


def test_each_name_that_a_hint_mentions_exists() -> None:
    wrong = []
    for module in (raised, elsewhere, relatives, spellings, parameterless, arguments):
        for space, path in NAME.findall(inspect.getsource(module)):
            if f"{space}{path}" in elsewhere.NAMES:  # the name of a package in a table
                continue
            value = SPACES[space]
            for part in path.split(".")[1:]:
                if space == "emberharmony" and part not in vars(emberharmony):
                    break  # the import of a module
                if not hasattr(value, part):
                    wrong.append(f"{module.__name__}: {space}{path}")
                    break
                value = getattr(value, part)
    assert not wrong, wrong


def test_each_op_that_replaces_a_name_exists() -> None:
    for name, call in spellings.NAMES.items():
        value = ops
        for part in re.match(r"[\w.]+", call)[0].split("."):  # type: ignore[index]
            assert hasattr(value, part), (name, call)
            value = getattr(value, part)
