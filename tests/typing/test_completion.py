"""Editors show the signature and the docstring of each name that they complete.

`ops` has stubs, and its names are made when it is imported: an editor finds a docstring only if `ops/__init__.py` says
where the op of a stub is declared. The test asks jedi, which completes in Jupyter and IPython.
"""

from collections.abc import Iterator
from types import ModuleType

import pytest

from emberharmony import nn, ops, optim
from emberharmony.core.registry import ALIASES
from tests.sampling import portion

jedi = pytest.importorskip("jedi")
SPACES = {"ops": ops, "ops.fft": ops.fft, "ops.linalg": ops.linalg, "ops.nn": ops.nn, "nn": nn, "optim": optim}
AT_RISK = (  # other functions, classes and modules have these names too
    *("ops.fft.fft", "ops.linalg.cond", "ops.dtype", "ops.ceil", "ops.linear", "ops.prod", "ops.shape"),
    *("ops.nn.linear", "optim.AdamW", "nn.Conv2d"),
)


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps what jedi has parsed in a folder of this process: it reads files that another one has half written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jedi.settings, "cache_directory", str(tmp_path_factory.mktemp("jedi")))
        yield


def names_of(space: str) -> list[str]:
    """Returns the public functions and classes of a namespace, without the second names of ops."""
    module = SPACES[space]
    names = [name for name in module.__all__ if name not in ALIASES and callable(getattr(module, name))]
    return [f"{space}.{name}" for name in names if not isinstance(getattr(module, name), ModuleType)]


@pytest.mark.parametrize("name", [*AT_RISK, *portion([name for space in SPACES for name in names_of(space)], 60)])
def test_a_completed_name_has_its_signature_and_its_docstring(name: str) -> None:
    space, _, last = name.rpartition(".")
    completions = jedi.Script(f"from emberharmony import {space.partition('.')[0]}\n{name}").complete()
    (completion,) = (each for each in completions if each.name == last)
    summary = getattr(SPACES[space], last).__doc__.strip().partition("\n")[0]
    assert completion.docstring(raw=True).startswith(summary)
    assert completion.get_signatures()
