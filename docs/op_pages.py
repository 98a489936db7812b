"""Writes one page for each op, and one for each category with a table of its ops."""

import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docstrings import as_markdown
from op_pictures import draw_op

from emberharmony import nn, ops
from emberharmony.core.docstrings.completion import complete_docstring
from emberharmony.core.registry import OPS, OpSpec
from emberharmony.rules import REFUSED, RULES
from emberharmony.testing.repr_source import spell_op
from emberharmony.testing.samples import all_samples

ROOT = Path(__file__).parents[1]
SEE_ALSO = re.compile(r"\n\nSee also: .+(?:\n\S.*)*(?:\n\n|\Z)")
STATUS = {
    "native": "its own",
    "override": "its own, in place of the composite",
    "composite": "composite: written over other ops",
}
TYPES = {
    "TensorLike": "a tensor, or numbers in lists",
    "CastTensorLike": "a tensor, or numbers in lists, which get the dtype that another argument names",
    "Operand": "a tensor, a number, or numbers in lists",
    "Tensors": "a sequence of tensors",
    "Axis": "an axis, a sequence of axes, or None",
    "Shape": "an integer, or a sequence of integers",
    "DTypeLike": "a dtype, or its name",
    "DeviceLike": "a device, or its name",
    "Tensor": "a tensor of the active backend",
}
"""What the names in signatures mean, by the names in `emberharmony.types`."""


class _Text(str):
    """An annotation that is shown as it is written."""

    __repr__ = str.__str__


def write_op_pages(folder: Path, entries: Sequence[dict[str, Any]]) -> None:
    """Writes `<category>.md` and `<category>/<op>.md` for every op.

    Args:
        folder: where the pages are written.
        entries: the ops of a report of `emberharmony conformance`.
    """
    categories: dict[str, list[OpSpec]] = {}
    for spec in OPS.values():
        categories.setdefault(spec.category, []).append(spec)
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        found.setdefault(entry["op"], []).append(entry)
    (folder / "index.md").write_text(api_index(categories), encoding="utf-8")
    for category, specs in categories.items():
        specs.sort(key=lambda spec: spec.name)
        (folder / f"{category}.md").write_text(category_page(category, specs), encoding="utf-8")
        pages = folder / category
        pages.mkdir(exist_ok=True)
        for spec in specs:
            page = op_page(spec, found.get(spec.name, []), draw_op(spec, pages))
            (pages / f"{spec.name}.md").write_text(page, encoding="utf-8")


def api_index(categories: Mapping[str, Sequence[OpSpec]]) -> str:
    """Returns the entry page of the reference: every op by its letter, the categories, and the other references."""
    letters: dict[str, list[str]] = {}
    for spec in OPS.values():
        for name in {re.sub("^random_", "random.", _short(spec)), *spec.aliases}:
            link = f"[`{name}`]({spec.category}/{spec.name}.md)"
            letters.setdefault(name.rpartition(".")[2][0].lower(), []).append(link)
    rows = [f"| [{title_of(name)}]({name}.md) | {_sentence(name, categories)} |" for name in sorted(categories)]
    return "\n".join(
        [
            "# API reference\n",
            "Functions of `from emberharmony import ops`. Elsewhere: [layers and losses](../layers.md),",
            "[optimizers and schedules](../optimizers.md), [files](../weights.md), [the command line](../commands.md).",
            "The [matrix](matrix.md) says what runs each op on each backend.\n",
            "## All ops\n",
            "::::{div} op-index",
            *(
                " ".join(sorted(letters[letter], key=lambda link: link.split("`")[1].rpartition(".")[2])) + "\n"
                for letter in sorted(letters)
            ),
            "::::\n",
            "## Ops by category\n",
            "| | |",
            "|---|---|",
            *rows,
            "\n```{toctree}\n:hidden:\n",
            "Layers and losses <../layers>",
            "Optimizers <../optimizers>",
            *sorted(categories),
            "Backends matrix <matrix>",
            "```\n",
        ]
    )


def title_of(category: str) -> str:
    """Returns the title of the page of a category, which is short, as the sidebar shows it."""
    return "FFT" if category == "fft" else category.replace("_", " ").capitalize()


def _sentence(category: str, categories: Mapping[str, Sequence[OpSpec]]) -> str:
    """Returns the first line of the docstring of the file that declares the ops of a category."""
    module = sys.modules[categories[category][0].declared.__module__]
    return (module.__doc__ or "").strip().partition("\n")[0]


def category_page(category: str, specs: Sequence[OpSpec]) -> str:
    """Returns the page of a category: what its ops have in common, and a table of them."""
    module = sys.modules[specs[0].declared.__module__]
    text = as_markdown(module.__doc__ or "")
    lines = [f"# {title_of(category)}", "", text, "", "| op | |", "|---|---|"]
    lines += [f"| [`{_short(spec)}`]({category}/{spec.name}.md) | {_first_sentence(spec)} |" for spec in specs]
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *(f"{category}/{s.name}" for s in specs), "```", ""])


def op_page(spec: OpSpec, entries: Sequence[dict[str, Any]], picture: str = "") -> str:
    """Returns the page of an op.

    Args:
        spec: the op.
        entries: what a report of `emberharmony conformance` says of it, one entry for each backend.
        picture: the Markdown of its picture, if it has one.
    """
    shown = _short(spec)
    aliases = sorted({f"ops.{alias}" for alias in spec.aliases} | _spellings(spec) - {f"ops.{shown}"})
    parts = [f"# {shown}", _indexed(spec, aliases), f"```python\nops.{shown}{signature(spec)}\n```"]
    if aliases:
        parts.append(f"Also: {', '.join(f'`{name}`' for name in aliases)}.")
    parts.append(as_markdown(SEE_ALSO.sub("\n\n", complete_docstring(spec))))
    parts += [picture, as_markdown(_near(spec))]
    for head, texts in _details(spec, entries):
        parts.append(f":::{{dropdown}} {head}\n\n{_joined(texts)}\n\n:::")
    return _joined(parts) + "\n"


def _details(spec: OpSpec, entries: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Yields the parts of a page that are folded: the head of each, and its paragraphs."""
    if types := list(_types(spec)):
        yield "Types", types
    yield "Backends and tolerance", ["\n".join(_backends(entries)), _accuracy(entries)]
    if not spec.takes_callable:
        yield "Gradient", [_gradient(spec)]
    yield "Source", [_source(spec)]


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def signature(spec: OpSpec) -> str:
    """Returns the signature of an op with the types of its parameters, one on a line if it is long."""
    read = inspect.signature(spec.declared)
    empty = inspect.Parameter.empty
    typed = [
        p.replace(annotation=p.annotation if p.annotation is empty else _Text(p.annotation))
        for p in read.parameters.values()
    ]
    whole = str(read.replace(parameters=typed, return_annotation=_Text(spec.returns)))
    if len(whole) + len(spec.name) < 90:
        return whole
    body, _, returned = whole.rpartition(") -> ")
    starred = next((i for i, p in enumerate(typed) if p.kind is p.KEYWORD_ONLY), None)
    lines = [str(p) for p in typed]
    if starred is not None and not any(p.kind is p.VAR_POSITIONAL for p in typed):
        lines.insert(starred, "*")
    assert body
    return "(\n" + "".join(f"    {line},\n" for line in lines) + f") -> {returned}"


def _short(spec: OpSpec) -> str:
    return spell_op(spec.name).removeprefix("ops.")


def _spellings(spec: OpSpec) -> set[str]:
    """Returns every name under which a namespace has the op."""
    names = {f"ops.{name}" for name in ops.__all__ if getattr(ops, name) is spec.function}
    for space in ("fft", "image", "linalg", "nn", "random"):
        module = getattr(ops, space)
        names |= {f"ops.{space}.{name}" for name in module.__all__ if getattr(module, name) is spec.function}
    return names


def _indexed(spec: OpSpec, aliases: Sequence[str]) -> str:
    """Returns the entries of the index, by which the search finds every name of the op."""
    names = dict.fromkeys([spec.name, *(alias.rpartition(".")[2] for alias in aliases)])
    return f"```{{index}} {', '.join(names)}\n```"


def _first_sentence(spec: OpSpec) -> str:
    text = inspect.cleandoc(spec.declared.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    return text.replace("|", "\\|")


GIVES = {
    "": "the dtype that they promote to",
    "float": "the dtype that they promote to, the default float in place of integers and booleans",
    "bool": "`bool`",
    "real": "the real counterpart of their dtype",
}


def _types(spec: OpSpec) -> Iterator[str]:
    facts = spec.facts
    if facts.takes:
        refused = f"; {' and '.join(facts.refuses)} ones raise a `DTypeError`" if facts.refuses else ""
        yield f"It takes {facts.takes} dtypes{refused}. The result has {GIVES[facts.gives]}."
    row = all_samples().get(spec.name)
    if row is not None and not row.reference:
        yield f"Dtypes that are compared with an oracle: {', '.join(f'`{d}`' for d in (*row.dtypes, *row.integers))}."
    words = {word for p in spec.parameters for word in TYPES if word in p.annotation.replace("|", " ").split()}
    words |= {"Tensor"} if "Tensor" in spec.returns else set()
    if words:
        yield "\n".join(f"- `{word}`: {TYPES[word]}" for word in TYPES if word in words)


def _backends(entries: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| backend | implementation | dtypes that it lacks |"
    yield "|---|---|---|"
    every = dict.fromkeys(dtype for entry in entries for dtype in entry["dtypes"])
    for entry in entries:
        status = STATUS.get(entry["status"], entry["status"])
        reason = f": {entry['reason']}" if entry["reason"] else ""
        lacking = ", ".join(d for d in every if d not in entry["dtypes"]) or "none"
        yield f"| {entry['backend']} | {status}{reason} | {'all' if entry['status'] == 'unsupported' else lacking} |"


def _accuracy(entries: Sequence[dict[str, Any]]) -> str:
    """Returns how far results may be from those of the oracle, and how far they are."""
    entry = entries[0]
    if entry["values"] == "by tests" or not any(each["dtypes"] for each in entries):
        return "No oracle can compute the result, so only tests check it."
    if not entry["tolerance"]:
        return "Results are exact."
    worst = max(each["worst"] for each in entries)
    return (
        f"Results are within {entry['tolerance']:g} eps of the dtype of a float64 oracle's, in units of the largest "
        f"magnitude (see [Ops and backends](../matrix.md)); the largest error that was met is {worst:.0%} of that."
    )


def _gradient(spec: OpSpec) -> str:
    row = all_samples().get(spec.name)
    if spec.name in REFUSED:
        return f"None: {REFUSED[spec.name]}."
    if spec.facts.gradient == "zero":
        return "Zero: the result does not change with the values of the arguments, or only by steps."
    checked = row is not None and row.differentiable
    how = "by a rule of its own" if spec.name in RULES else "through the ops that it is written over"
    tested = "On every backend it is compared with finite differences of the oracle." if checked else ""
    return f"NumPy's tape differentiates it {how}; PyTorch and MLX have gradients of their own. {tested}".strip()


def _source(spec: OpSpec) -> str:
    code = spec.declared.__code__
    place = f"{Path(code.co_filename).relative_to(ROOT).as_posix()}:{code.co_firstlineno}"
    return (
        f"`{place}` declares it. `emberharmony op {spec.name} --backend NAME` prints the code that runs, and "
        f"`emberharmony conformance --op {spec.name}` checks it on your machine."
    )


def _near(spec: OpSpec) -> str:
    """Returns what the docstring says below "See also", with a link to each op and layer."""
    block = SEE_ALSO.search(complete_docstring(spec))
    return re.sub(r"`([\w.]+)`", lambda match: _link(match[1]), block[0].strip()) if block else ""


def _link(name: str) -> str:
    """Returns a link from the page of an op to that of another one, or to the section of a layer."""
    if name in OPS:
        return f"[`{_short(OPS[name])}`](../{OPS[name].category}/{name}.md)"
    layer = getattr(nn, name.removeprefix("nn."))
    stem = layer.__module__.removeprefix(f"{nn.__name__}.")
    return f"[`{name}`](../nn/{stem}.md#{layer.__name__.lower()})"
