"""`emberlint explain CODE` and `emberlint rules`: show the rules."""

import click

from emberlint.run.explanation import explanation_lines as explanation_lines
from emberlint.run.registry import all_rules, codes_of_word


@click.command()
@click.argument("code")
def explain(code: str) -> None:
    """Show what a rule finds, and why. CODE may be a name."""
    for rule_code in codes_of_word(code):
        click.echo("\n".join(explanation_lines(all_rules()[rule_code])))


@click.command()
def rules() -> None:
    """List the rules."""
    for rule in all_rules().values():
        click.echo(f"{rule.code}  {rule.min_tier.name}  {rule.name:24}  {(rule.__doc__ or '').splitlines()[0]}")
