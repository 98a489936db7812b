"""The page of a rule: what it finds and why, with examples."""

from collections.abc import Iterator

from emberlint.rule import AnyRule, Example

PAGE = "https://emberharmony.readthedocs.io/en/latest/emberlint.html"


def rule_address(rule: AnyRule) -> str:
    """Returns the address of the section on a rule in the documentation."""
    return f"{PAGE}#{rule.code.lower()}-{rule.name}"


def explanation_lines(rule: AnyRule) -> Iterator[str]:
    """Yields the lines of a rule's page, in Markdown."""
    yield f"## {rule.code} {rule.name}"
    yield ""
    yield (type(rule).__doc__ or "").strip()
    yield ""
    yield f"{rule.why}"
    yield ""
    yield f"Lowest tier: {rule.min_tier.name}. Applies to: {', '.join(sorted(rule.roles))}."
    yield ""
    yield from _example_lines("Found", rule.INVALID)
    repaired_examples = [example for example in rule.INVALID if example.fixed is not None]
    if repaired_examples:
        yield from _example_lines("Repaired", [Example(example.fixed or "") for example in repaired_examples[:1]])
    yield from _example_lines("Clean", rule.VALID)


def _example_lines(title: str, examples: object, limit: int = 3) -> Iterator[str]:
    shown_examples = (
        [example for example in examples if example.source.strip()][:limit]
        if isinstance(examples, list | tuple)
        else []
    )
    if not shown_examples:
        return
    yield f"{title}:"
    yield ""
    yield "```python"
    for number, example in enumerate(shown_examples):
        if number:
            yield ""
        if example.path != Example("").path:
            yield f"# {example.path}"
        yield example.source.rstrip("\n")
    yield "```"
    yield ""
