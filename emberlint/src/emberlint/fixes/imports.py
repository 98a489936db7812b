"""Adds the imports that repairs need, and removes those that they made useless."""

import ast
import io
import tokenize
from collections.abc import Iterable

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor, RemoveImportsVisitor

from emberlint.source.source_file import SourceFile


def with_namespaces(tree: cst.Module, namespaces: Iterable[str]) -> cst.Module:
    """Returns the module with the missing imports of namespaces added."""
    for namespace in sorted(namespaces):
        package, _, name = namespace.rpartition(".")
        context = CodemodContext()
        AddImportsVisitor.add_needed_import(context, package, name)
        tree = AddImportsVisitor(context).transform_module(tree)
    return tree


def without(file: SourceFile, tree: cst.Module, names: Iterable[str]) -> cst.Module:
    """Returns the module without the imports that were used only by repaired expressions.

    An import with a comment stays, because a person must judge whether the comment still applies.
    """
    for name in sorted(names):
        for binding in file.names.root.bindings.get(name, ()):
            statement = file.parent(binding.node)
            if not isinstance(binding.node, ast.alias) or not isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            alias, context = binding.node, CodemodContext()
            module = alias.name if isinstance(statement, ast.Import) else statement.module or ""
            member = None if isinstance(statement, ast.Import) else alias.name
            RemoveImportsVisitor.remove_unused_import(context, module, member, alias.asname)
            shorter = RemoveImportsVisitor(context).transform_module(tree)
            tree = shorter if comments(shorter.code) == comments(tree.code) else tree
    return tree


def comments(text: str, head: str = "") -> list[str]:
    """Returns the comments of a text, sorted; `head` is what the text needs before it to be parsed."""
    if "#" not in text:
        return []
    tokens = tokenize.generate_tokens(io.StringIO(head + text).readline)
    return sorted(token.string for token in tokens if token.type == tokenize.COMMENT)
