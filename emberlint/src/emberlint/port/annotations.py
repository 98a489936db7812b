"""The step of an annotation with the type of a native tensor."""

import ast

from emberlint.fixes.spelling import Spelling
from emberlint.knowledge.native import Use
from emberlint.knowledge.signatures import UntranslatableError
from emberlint.port.step import ANNOTATION, Step
from emberlint.port.text import NodeEditor
from emberlint.source.source_file import SourceFile


def is_annotation(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether an expression is in the annotation of a parameter, a result or a variable."""
    child: ast.AST = node
    for ancestor in file.ancestors(node):
        if isinstance(ancestor, ast.arg | ast.AnnAssign | ast.FunctionDef | ast.AsyncFunctionDef):
            return child in (getattr(ancestor, ANNOTATION, None), getattr(ancestor, "returns", None))
        child = ancestor
    return False


def annotation_step(file: SourceFile, use: Use) -> Step:
    """Returns the step of an annotation: the type of the tensors of every backend."""
    tensor_spelling = Spelling("Tensor", "emberharmony.Tensor", added=True)
    is_bound = any(
        binding.origin != tensor_spelling.namespace
        for binding in file.names.root.bindings.get(tensor_spelling.text, ())
    )
    if is_bound or file.settings.namespaces[:1] != ("emberharmony.ops",):
        reason = "`Tensor` is bound to something else" if is_bound else "the namespace has no type of tensors"
        return Step(use.node, use.origin, ANNOTATION, reason=reason, advice=tensor_spelling.namespace)
    try:
        changes = (NodeEditor(file, use.node, tensor_spelling).replacement_change(use.node, tensor_spelling.text),)
    except UntranslatableError as error:
        return Step(use.node, use.origin, ANNOTATION, reason=str(error), advice=tensor_spelling.namespace)
    return Step(use.node, use.origin, ANNOTATION, changes, tensor_spelling)
