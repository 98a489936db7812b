"""The installed backends, in pairs between which cells move, and a class of cells of a user."""

import itertools
from typing import Any

import pytest

from emberharmony import Parameter
from emberharmony.backend import create_backend
from emberharmony.backend.discovery import BUILTIN, is_installed

INSTALLED = [name for name in BUILTIN if is_installed(name)]
PAIRS = list(itertools.permutations(INSTALLED, 2))
pairs = pytest.mark.parametrize("here, there", PAIRS)


def kind(name: str) -> type:
    return create_backend(name).tensor_type


class Named(Parameter):
    """A class of a user, with an attribute of its own."""

    def __init__(self, value: Any, tag: list[str]) -> None:
        super().__init__(value, name="n")
        self.tag = tag
