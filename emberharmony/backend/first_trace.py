"""Compiles the ops on PyTorch before `torch.compile` meets an op that was never called.

Dynamo cannot trace the first call of an op, which loads the backend, compiles the op and exchanges its code: Dynamo
keeps the signature of each function that it has met, and where a graph breaks it traces again and expects the same
instructions. To compile all ops takes 60 ms, which every program would pay, if PyTorch's becoming the backend did it.
Dynamo is a module of its own, whose import takes seconds, and so the ops are compiled when that begins.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from emberharmony.core import selection

DYNAMO = "torch._dynamo"
STEPS: list[Callable[[], None]] = []
"""What is called before the ops are compiled: it chooses the backend."""


class _BeforeDynamo:
    """A finder of modules that finds none; Python asks it first, so it sees when PyTorch's compiler is imported."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Compiles the ops if Dynamo is about to be imported; returns None, so that the other finders are asked."""
        if name == DYNAMO:
            for step in STEPS:
                step()
            selection.compile_for_tracer(DYNAMO)
        return None


sys.meta_path.insert(0, _BeforeDynamo)
