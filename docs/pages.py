"""Writes one page a category from the op declarations."""

import textwrap
from pathlib import Path

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed, load
from emberharmony.core.registry import OPS, OpSpec

assert ops


def _signature(spec: OpSpec) -> str:
    import inspect

    signature = inspect.signature(spec.declared)
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def _kind(spec: OpSpec, backend: str) -> str:
    own = getattr(type(load(backend)), spec.name, None)
    if own is None:
        return "composite"
    return f"unsupported: {own.reason}" if hasattr(own, "reason") else "override" if spec.composite else "native"


def write_pages(folder: Path) -> None:
    """Writes `<category>.md` for every category and the matrix of all ops, removing what was there."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    backends = [name for name in BUILTIN if is_installed(name)]
    categories: dict[str, list[OpSpec]] = {}
    for spec in OPS.values():
        categories.setdefault(spec.category, []).append(spec)
    for category, specs in categories.items():
        module = __import__(f"emberharmony.ops.{category}", fromlist=["__doc__"])
        title, _, rest = (module.__doc__ or category).strip().partition("\n")
        parts = [f"# {category}: {title.rstrip('.')}\n\n{rest.strip()}\n"]
        for spec in sorted(specs, key=lambda spec: spec.name):
            body = textwrap.dedent("    " + (spec.declared.__doc__ or "").strip())
            names = f"Also: {', '.join(f'`{alias}`' for alias in spec.aliases)}.\n\n" if spec.aliases else ""
            shown = spec.name.removeprefix("linalg_") if category == "linalg" else spec.name
            parts.append(f"\n## {shown}\n\n```python\n{shown}{_signature(spec)}\n```\n\n{names}{_as_markdown(body)}\n")
        (folder / f"{category}.md").write_text("".join(parts), encoding="utf-8")
    rows = "".join(
        f"| `{spec.name}` | {' | '.join(_kind(spec, name) for name in backends)} |\n"
        for spec in sorted(OPS.values(), key=lambda spec: spec.name)
    )
    head = f"| op | {' | '.join(backends)} |\n|---|{'---|' * len(backends)}\n"
    note = "*native*: the backend's own; *composite*: written over other ops; *override*: a composite done natively."
    (folder / "matrix.md").write_text(f"# Ops and backends\n\n{note}\n\n{head}{rows}", encoding="utf-8")


def _as_markdown(docstring: str) -> str:
    """Returns a docstring with its examples fenced."""
    lines: list[str] = []
    fenced = False
    for line in docstring.splitlines():
        example = line.startswith("    ") and (fenced or line.strip().startswith(">>>"))
        if example != fenced:
            lines.append("```pycon" if example else "```")
            fenced = example
        lines.append(line.strip() if example else line)
    return "\n".join([*lines, "```"] if fenced else lines)
