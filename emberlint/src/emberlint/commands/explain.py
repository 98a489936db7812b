"""`emberlint explain CODE` and `emberlint rules`: show the rules."""

import click

from emberlint.run.explanation import explanation as explanation
from emberlint.run.registry import all_rules, resolve


@click.command()
@click.argument("code")
def explain(code: str) -> None:
    """Show what a rule finds, and why. CODE may be a name."""
    for rule_code in resolve(code):
        click.echo("\n".join(explanation(all_rules()[rule_code])))


@click.command()
def rules() -> None:
    """List the rules."""
    for rule in all_rules().values():
        click.echo(f"{rule.code}  {rule.min_tier.name}  {rule.name:24}  {(rule.__doc__ or '').splitlines()[0]}")
