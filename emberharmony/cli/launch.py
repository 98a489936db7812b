"""`emberharmony launch`: starts a program on several ranks, and ends them all."""

import sys
from pathlib import Path

import click


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-n", "--ranks", type=click.IntRange(1), help="How many; default: the slots of the hosts, or 1.")
@click.option(
    "--hosts",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with the machines: a name on each line, perhaps with slots=4.",
)
@click.option("--node", default=0, show_default=True, help="The number of this machine among the hosts, for torchrun.")
@click.option(
    "--transport",
    default="auto",
    show_default=True,
    help="What connects them: torch, torch:nccl, mlx, mlx:jaccl, mlx:mpi, mpi.",
)
@click.option(
    "--launcher",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "local", "torchrun", "mlx.launch", "mpirun"]),
    help="What starts them; auto takes processes of its own on one machine, except for MPI.",
)
@click.option("--backend", default="", help="The backend of all ranks (EMBERHARMONY_BACKEND).")
@click.option(
    "--grace",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0),
    help="The seconds that the other ranks have to end by themselves when one has failed.",
)
@click.option("--prefix/--no-prefix", default=True, show_default=True, help="Put the rank before each line of output.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def launch(
    ranks: int | None,
    hosts: Path | None,
    node: int,
    transport: str,
    launcher: str,
    backend: str,
    grace: float,
    prefix: bool,
    program: str,
    arguments: tuple[str, ...],
) -> None:
    """Run PROGRAM on several ranks, which ops.distributed connects.

    A PROGRAM that ends in .py is run by this Python. When one rank fails or Ctrl-C is pressed, all of them end.
    """
    # Imported here, because only this command needs it.
    from emberharmony.distributed.launching import commands, run

    host_entries = tuple(commands.read_hosts(hosts.read_text(encoding="utf-8"))) if hosts else ()
    rank_count = ranks or sum(host.slots for host in host_entries) or 1
    run_options = run.Options(rank_count, transport, launcher, host_entries, node, backend, grace, prefix)
    sys.exit(run.launch([*commands.command(program), *arguments], run_options))
