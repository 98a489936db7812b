"""Rank and size by the variables of the launchers."""

import json
from pathlib import Path

import numpy as np
import pytest

from emberharmony.core.errors import ArgumentError, DistributedError
from emberharmony.distributed import environment, transports, wire, world
from emberharmony.distributed.environment import Place
from emberharmony.distributed.launching import commands

TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "a",
    "MASTER_PORT": "7",
}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
SLURM = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1", "SLURM_STEP_NODELIST": "n[07-10]"}
SLURM |= {"SLURM_STEP_TASKS_PER_NODE": "4(x2)", "SLURM_JOB_ID": "12", "SLURM_STEP_ID": "0"}


def test_the_variables_of_each_launcher() -> None:
    assert environment.process_place({}) == Place(0, 1, 0, 1, "127.0.0.1", 29500)
    assert environment.process_place(TORCHRUN) == Place(3, 4, 1, 2, "a", 7)
    mpi = environment.process_place({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "job"})
    assert mpi[:5] == Place(1, 2, 1, 2, "127.0.0.1")[:5]
    assert 20000 <= mpi.port < 32000
    assert environment.process_place({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}).address == ""
    assert environment.process_place({"PMI_RANK": "1", "PMI_SIZE": "3"})[:2] == (1, 3)
    slurm = environment.process_place(SLURM)
    assert slurm[:5] == (5, 8, 1, 0, "n07")
    assert slurm.port == environment.process_place({**SLURM, "SLURM_PROCID": "1"}).port
    assert slurm.port != environment.process_place({**SLURM, "SLURM_JOB_ID": "13"}).port
    assert environment.process_place({**SLURM, "MASTER_PORT": "7"}).port == 7
    assert environment.process_place({**OPEN_MPI, "PMIX_NAMESPACE": "job", "MASTER_PORT": "8"}).port == 8
    assert environment.process_place({**SLURM, "SLURM_STEP_TASKS_PER_NODE": "8"}).is_local
    # A batch script runs once, and srun in it starts the tasks.
    assert environment.process_place({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}).size == 1


def test_the_hosts_of_a_ring(tmp_path: Path) -> None:
    path = tmp_path / "ring.json"
    path.write_text(json.dumps([["10.0.0.1:5000"], ["10.0.0.2:5000"], ["10.0.0.2:5001"]]))
    assert environment.process_place({"MLX_RANK": "2", "MLX_HOSTFILE": str(path)})[:5] == (2, 3, 1, 2, "10.0.0.1")


def test_wrong_variables_are_named() -> None:
    with pytest.raises(DistributedError, match="WORLD_SIZE is 'four', expected an integer"):
        environment.process_place({**TORCHRUN, "WORLD_SIZE": "four"})
    for size in ("2", "3", "0"):
        with pytest.raises(DistributedError, match=f"rank 3 of {size}, expected a rank from 0 to size - 1"):
            environment.process_place({**TORCHRUN, "WORLD_SIZE": size})


def test_the_transport_fits_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EMBERHARMONY_TRANSPORT", "RANK", "MLX_HOSTFILE", *environment.MPI_RANKS):
        monkeypatch.delenv(name, raising=False)
    installed = {"torch", "mlx", "mpi"}
    monkeypatch.setattr(transports, "is_installed", lambda name: name in installed)
    pair = Place(0, 2)
    assert transports.automatic_transport_name(Place()) == "single"
    assert transports.automatic_transport_name(pair) == "torch"
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    assert transports.automatic_transport_name(pair) == "mpi"
    monkeypatch.setenv("MLX_HOSTFILE", "ring.json")
    assert transports.automatic_transport_name(pair) == "mlx"
    monkeypatch.setenv("EMBERHARMONY_TRANSPORT", "mpi")
    assert transports.automatic_transport_name(pair) == "mpi"
    monkeypatch.delenv("EMBERHARMONY_TRANSPORT")
    installed.clear()
    with pytest.raises(DistributedError, match="rank 0 of 2, but no transport is installed: pip install torch"):
        transports.automatic_transport_name(pair)


def test_wrong_transports_are_named() -> None:
    with pytest.raises(DistributedError, match=r"there is no transport 'tourch'; .*; did you mean 'torch'\?"):
        transports.connect("tourch", Place(), 1.0)
    with pytest.raises(DistributedError, match="'single' is for one process, but this is one of 2"):
        transports.connect("single", Place(0, 2), 1.0)
    with pytest.raises(ArgumentError, match="timeout is 0, expected seconds above 0"):
        world.init(timeout=0)
    world.init()
    with pytest.raises(ArgumentError, match="the transport is 'single' already, not 'torch'"):
        world.init("torch")
    assert world.init("single", timeout=600.0) is world.init()
    with pytest.raises(ArgumentError, match=r"the time-out is 600 s since the first call .*, not 5 s; call init"):
        world.init(timeout=5)


def test_the_lines_of_a_hostfile() -> None:
    assert commands.read_hosts("\n# all\na slots=2\nb\n") == [("a", 2), ("b", 1)]
    for text in ("a slots=0", "a 2 3", "a slots=x"):
        with pytest.raises(ArgumentError, match="line 1 of the hosts is"):
            commands.read_hosts(text)
    with pytest.raises(ArgumentError, match="names no machine"):
        commands.read_hosts("# nothing")


def test_the_launcher_fits_the_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "is_installed", lambda name: True)
    monkeypatch.setattr(commands, "launcher_path", lambda name: f"/bin/{name}")
    two = commands.read_hosts("a\nb slots=2")
    assert commands.choose_transport_and_launcher("auto", "auto", []) == ("torch", "local")
    assert commands.choose_transport_and_launcher("mlx", "auto", []) == ("mlx", "local")
    assert commands.choose_transport_and_launcher("mpi", "auto", []) == ("mpi", "mpirun")
    assert commands.choose_transport_and_launcher("auto", "mlx.launch", []) == ("mlx", "mlx.launch")
    assert [commands.choose_transport_and_launcher(name, "auto", two)[1] for name in ("torch", "mlx", "mlx:mpi")] == [
        "torchrun",
        "mlx.launch",
        "mpirun",
    ]
    with pytest.raises(DistributedError, match="local processes run on this machine"):
        commands.choose_transport_and_launcher("torch", "local", two)
    monkeypatch.setattr(commands, "_is_open_mpi", lambda path: True)
    machines = commands.Machines(3, two, "hosts", 7, 1)
    variables = {"EMBERHARMONY_BACKEND": "numpy", "OMP_NUM_THREADS": "2", "HOME": "/"}

    def line(launcher: str, transport: str, machines: commands.Machines = machines) -> str:
        return " ".join(commands.launcher_command_line(launcher, transport, ["train.py"], machines, variables))

    found = line("torchrun", "torch")
    assert "--nnodes=2 --node-rank=1 --nproc-per-node=2 --master-addr=a --master-port=7 --log-dir=/dev/null" in found
    carried = "--env EMBERHARMONY_BACKEND=numpy --env OMP_NUM_THREADS=2"
    assert line("mlx.launch", "mlx").endswith(f"--backend ring --hosts a,b,b {carried} -- train.py")
    assert line("mlx.launch", "mlx:jaccl", machines._replace(hosts=())).endswith("--backend jaccl -n 3 -- train.py")
    assert line("mpirun", "mpi").endswith("--hostfile hosts -x EMBERHARMONY_BACKEND -x OMP_NUM_THREADS -n 3 train.py")
    assert line("mpirun", "mpi", machines._replace(hosts=())).endswith("--oversubscribe -n 3 train.py")
    monkeypatch.setattr(commands, "_is_open_mpi", lambda path: False)
    assert line("mpirun", "mpi") == "/bin/mpirun -f hosts -n 3 train.py"
    monkeypatch.setattr(commands, "launcher_path", lambda name: "")
    with pytest.raises(DistributedError, match="mpirun is not installed"):
        commands.choose_transport_and_launcher("mpi", "auto", [])


def test_buckets_hold_all_elements_once() -> None:
    rng = np.random.default_rng(0)
    for most in (1, 3, 7, 1000):
        lengths = [int(n) for n in rng.integers(0, 12, size=9)]
        buckets = list(wire.split_into_buckets(lengths, most))
        assert all(sum(stop - start for _, start, stop in bucket) == most for bucket in buckets[:-1])
        seen = [(i, at) for bucket in buckets for i, start, stop in bucket for at in range(start, stop)]
        assert seen == [(i, at) for i, length in enumerate(lengths) for at in range(length)]


def test_bfloat16_is_rounded_as_ml_dtypes_does() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    numbers = np.random.default_rng(0).integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32)
    numbers = numbers[~np.isnan(numbers)]
    found = wire.tensor_of_sums(numbers.copy(), "bfloat16", numbers.shape).bits
    assert (found == numbers.astype(ml_dtypes.bfloat16).view(np.uint16)).all()
    # Halfway between two neighbours, and one bit to either side.
    halves = (np.arange(0x3F80, 0x4080, dtype=np.uint32) << 16) + np.uint32(0x8000)
    for bits in (halves, halves - np.uint32(1), halves + np.uint32(1)):
        near = bits.view(np.float32)
        found = wire.tensor_of_sums(near.copy(), "bfloat16", near.shape).bits
        assert (found == near.astype(ml_dtypes.bfloat16).view(np.uint16)).all()
    # NaN whose bits would be rounded to those of zero, or cut to those of infinity.
    nans = np.asarray([0x7F800001, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF, 0x7FC00000], np.uint32).view(np.float32)
    assert np.isnan(wire.vector_to_sum(wire.tensor_of_sums(nans.copy(), "bfloat16", nans.shape))).all()
    assert np.isnan(wire.vector_to_sum(wire.tensor_of_sums(np.asarray([np.nan], np.float32), "bfloat16", (1,)))).all()
