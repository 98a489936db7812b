"""`emberlint explain CODE` and `emberlint rules`: show the rules."""

from collections.abc import Iterator

import click

from emberlint.rule import AnyRule, Example
from emberlint.run.registry import all_rules, resolve


@click.command()
@click.argument("code")
def explain(code: str) -> None:
    """Show what a rule finds, and why. CODE may be a name."""
    for one in resolve(code):
        click.echo("\n".join(explanation(all_rules()[one])))


def explanation(rule: AnyRule) -> Iterator[str]:
    """Yields the lines of a rule's page, in Markdown."""
    yield f"## {rule.code} {rule.name}"
    yield ""
    yield (type(rule).__doc__ or "").strip()
    yield ""
    yield f"{rule.why}"
    yield ""
    yield f"Lowest tier: {rule.min_tier.name}. Applies to: {', '.join(sorted(rule.roles))}."
    yield ""
    yield from _shown("Found", rule.INVALID)
    repaired = [one for one in rule.INVALID if one.fixed is not None]
    if repaired:
        yield from _shown("Repaired", [Example(one.fixed or "") for one in repaired[:1]])
    yield from _shown("Clean", rule.VALID)


def _shown(title: str, examples: object, limit: int = 3) -> Iterator[str]:
    chosen = [one for one in examples if one.source.strip()][:limit] if isinstance(examples, list | tuple) else []
    if not chosen:
        return
    yield f"{title}:"
    yield ""
    yield "```python"
    for number, example in enumerate(chosen):
        if number:
            yield ""
        if example.path != Example("").path:
            yield f"# {example.path}"
        yield example.source.rstrip("\n")
    yield "```"
    yield ""


@click.command()
def rules() -> None:
    """List the rules."""
    for rule in all_rules().values():
        click.echo(f"{rule.code}  {rule.min_tier.name}  {rule.name:24}  {(rule.__doc__ or '').splitlines()[0]}")
