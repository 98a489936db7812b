"""Mistakes with files."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Linear(2, 1)\n"

MISTAKES = [
    Mistake(
        "the order of torch.save, which is ours",
        2,
        f"{NET}io.save(net.state_dict(), 'net.safetensors')",
        says=r"\['net\.safetensors'\]",
    ),
    Mistake(
        "the path first, as in numpy.save", 2, f"{NET}io.save('net.safetensors', net)", says=r"the path comes second"
    ),
    Mistake(
        "the ending of PyTorch's files", 2, f"{NET}io.save(net.state_dict(), 'net.pt')", says=r"use 'net\.safetensors'"
    ),
    Mistake(
        "a file that is not there",
        2,
        "try:\n    io.load('nte.safetensors')\nexcept FileNotFoundError as error:\n    print('caught:', error)",
        says=r"caught: nte\.safetensors: does not exist",
    ),
    Mistake(
        "a checkpoint of another backend",
        2,
        f"{NET}io.Checkpoint('runs').save(1, model=net, optimizer=optim.Adam(net))\n"
        "with ops.use_backend('torch'): io.Checkpoint('runs').restore(model=net, optimizer=optim.Adam(net))",
        needs=("torch",),
        says=r"1$",
        not_says="CheckpointWarning",
    ),
    Mistake(
        "port, which writes in place",
        2,
        "$PYTHON -m emberlint --help | grep -A3 '^ *port'",
        shell=True,
        says=r"in place",
    ),
    Mistake(
        "a folder that is not there",
        2,
        f"{NET}io.save(net.state_dict(), 'runs/1/net.safetensors')",
        says=r"os\.makedirs\('runs/1'",
    ),
    Mistake("save of Keras", 2, f"{NET}net.save('net.keras')", says=r"io\.save\(model, 'model\.safetensors'\)"),
    Mistake(
        "restore before anything was saved",
        2,
        f"{NET}io.Checkpoint('runs').restore(model=net)",
        says=r"ask latest\(\) first",
    ),
    Mistake(
        "the parts of a checkpoint by position",
        2,
        f"{NET}io.Checkpoint('runs').save(1, net, optim.Adam(net))",
        says=r"runs/step-000001",
    ),
]
