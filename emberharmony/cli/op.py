"""`emberharmony op NAME`: shows an op's declaration and parameters, the code that runs, its rule and its sample row."""

import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import emberharmony.ops  # noqa: F401  (fills the registry)
from emberharmony.backend import create_backend, current
from emberharmony.core.dispatch import DISPATCH, REASON, SWAP
from emberharmony.core.docstrings.completion import descriptions
from emberharmony.core.errors import ArgumentError, suggest
from emberharmony.core.op_code.portable import source_of
from emberharmony.core.registry import ALIASES, OPS, OpSpec
from emberharmony.core.types import BackendName

PACKAGE = Path(__file__).parents[1]


@click.command()
@click.argument("name")
@click.option("--backend", "backend_name", help="The backend whose code is shown; default: the active backend.")
def op(name: str, backend_name: str | None) -> None:
    """Show an op: declaration, parameters, the code that runs on a backend, gradient rule, sample row and tolerance."""
    backend = current() if backend_name is None else create_backend(BackendName(backend_name), fallback=None)
    click.echo("\n\n".join(text_sections(find_op(name), backend)))


def find_op(name: str) -> OpSpec:
    """Returns the declaration of an op, given its name, an alias, or a name such as `linalg.det` or `ops.linalg.det`.

    Raises:
        ArgumentError: if there is no such op.
    """
    short_name = name.removeprefix("ops.")
    for candidate in (short_name, short_name.replace(".", "_"), short_name.rpartition(".")[2]):
        if ALIASES.get(candidate, candidate) in OPS:
            return OPS[ALIASES.get(candidate, candidate)]
    raise ArgumentError(f"there is no op {name!r}{suggest(short_name, [*OPS, *ALIASES])}")


def text_sections(spec: OpSpec, backend: Any) -> Iterator[str]:
    """Yields the paragraphs of the text that `emberharmony op` prints about an op."""
    aliases_text = f", also {', '.join(spec.aliases)}" if spec.aliases else ""
    yield f"ops.{spec.name}{aliases_text}: {_kind_text(spec, backend)}"
    yield _titled_text(f"declaration, {_source_place(spec.declared)}", inspect.getsource(spec.declared))
    if parameter_texts := descriptions(spec):
        yield _titled_text("parameters", "\n".join(f"{name}: {text}" for name, text in parameter_texts.items()))
    yield _implementation_text(spec, backend)
    yield _titled_text("the code of a call, after the backend is chosen", source_of(spec, backend))
    yield _dispatch_text(spec)
    yield _rule_text(spec)
    yield _sample_row_text(spec)


def _kind_text(spec: OpSpec, backend: Any) -> str:
    if not spec.composite:
        return f"a primitive, which each backend defines; on {backend.name} {_owner_text(spec, backend)}"
    if backend.defines(spec):
        return f"a composite that {backend.name} overrides in {_owner_text(spec, backend)}"
    return f"a composite: {backend.name} runs the body of its declaration"


def _owner_text(spec: OpSpec, backend: Any) -> str:
    backend.defines(spec)  # the first access imports the op's definition
    defining_class = next((cls for cls in (*backend.definers, *type(backend).__mro__) if spec.name in vars(cls)), None)
    if defining_class is None:
        return "nothing"
    return f"{defining_class.__module__.rpartition('.')[2]}.{defining_class.__name__}"


def _implementation_text(spec: OpSpec, backend: Any) -> str:
    implementation = backend.implementation(spec)
    fast_form = getattr(implementation, "__fast__", None)
    note_texts = []
    if fast_form is not None:
        condition_text = fast_form.when.format(*(p.name for p in spec.parameters)) or "True"
        note_texts.append(f"{_qualified_name(fast_form.native)} is called directly if {condition_text}")
    complete_op, implementation = implementation, getattr(implementation, "__promoted__", implementation)
    if implementation is not complete_op:
        kinds_text = " or ".join(spec.facts.refuses)
        refusal_text = f" that is not {kinds_text}" if kinds_text else ""
        note_texts.append(
            f"operands become tensors of one dtype{refusal_text}, and then {_qualified_name(implementation)} is called"
        )
    if implementation is spec.body:
        note_texts.append("the declaration's body")
        return _titled_text(f"implementation on {backend.name}", "\n".join(note_texts))
    try:
        note_texts.append(inspect.getsource(inspect.unwrap(implementation)))
        head_text = f"implementation on {backend.name}, {_source_place(inspect.unwrap(implementation))}"
    except (TypeError, OSError):  # a C function has no Python source
        note_texts.append(_qualified_name(implementation))
        head_text = f"implementation on {backend.name}"
    return _titled_text(head_text, "\n".join(note_texts))


def _dispatch_text(spec: OpSpec) -> str:
    if DISPATCH == SWAP:
        explanation_text = (
            "the op has the code above from its first call on. After use_backend with another backend, that code looks "
            "for an override first, and an op that was not called before has this:"
        )
    else:
        explanation_text = "the op keeps the lookup below:"
    return _titled_text(f"dispatch: {DISPATCH} ({REASON})", f"{explanation_text}\n{source_of(spec)}")


def _rule_text(spec: OpSpec) -> str:
    from emberharmony import rules  # here, because the rules take time to import

    if spec.name in rules.RULES:
        gradient_rule = rules.RULES[spec.name]
        rule_functions = gradient_rule if isinstance(gradient_rule, tuple) else (gradient_rule,)
        source_places = sorted({_source_place(function) for function in rule_functions if function is not None})
        return _titled_text("gradient rule of the tape", ", ".join(source_places))
    if spec.facts.gradient == "zero":
        return _titled_text("gradient rule of the tape", "the result is constant: its gradient is zero")
    if spec.name in rules.REFUSED:
        return _titled_text("gradient rule of the tape", f"refused: {rules.REFUSED[spec.name]}")
    if spec.composite:
        return _titled_text("gradient rule of the tape", "none of its own: the tape differentiates the ops of its body")
    return _titled_text(
        "gradient rule of the tape",
        f'missing: add one to rules/{spec.category_path}.py, or say @op(gradient="zero")',
    )


def _sample_row_text(spec: OpSpec) -> str:
    try:
        from emberharmony.testing import samples  # here, because an extra may be missing

        sample_row = samples.all_samples().get(spec.name)
    except ImportError as error:
        return _titled_text("sample row", f"cannot be read: {error}; pip install 'emberharmony[conformance]'")
    if sample_row is None:
        return _titled_text("sample row", f"missing: add one to testing/samples/{spec.category_path}.py")
    tolerance_text = "exact" if not sample_row.tolerance else f"within {sample_row.tolerance} eps"
    gradient_text = "with gradient" if sample_row.differentiable else "without gradient"
    dtypes_text = ", ".join([*sample_row.dtypes, *sample_row.integers])
    summary_text = f"{len(sample_row.cases)} cases in {dtypes_text}; {tolerance_text}; {gradient_text}"
    summary_text += f"\nemberharmony conformance --op {spec.name}"
    return _titled_text(f"sample row, testing/samples/{spec.category_path}.py", summary_text)


def _source_place(function: Any) -> str:
    code = function.__code__
    path = Path(code.co_filename)
    path_text = path.relative_to(PACKAGE.parent) if path.is_relative_to(PACKAGE.parent) else path
    return f"{path_text.as_posix()}:{code.co_firstlineno}"


def _qualified_name(function: Any) -> str:
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}.{getattr(function, '__qualname__', None) or getattr(function, '__name__', repr(function))}"


def _titled_text(head: str, text: str) -> str:
    return f"{head}\n{textwrap.indent(textwrap.dedent(text).rstrip(), '    ')}"
