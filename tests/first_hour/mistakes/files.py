"""Mistakes with files."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Linear(2, 1)\n"

MISTAKES = [
    Mistake("the order of torch.save", 0, f"{NET}io.save(net.state_dict(), 'net.safetensors')"),
    Mistake("a model in the place of tensors", 1, f"{NET}io.save('net.safetensors', net)"),
    Mistake("the ending of PyTorch's files", 2, f"{NET}io.save('net.pt', net.state_dict())"),
    Mistake(
        "a file that is not there",
        1,
        "try:\n    io.load('nte.safetensors')\nexcept FileNotFoundError as error:\n    print('caught:', error)",
    ),
    Mistake(
        "a checkpoint of another backend",
        1,
        f"{NET}io.Checkpoint('runs').save(1, model=net, optimizer=optim.Adam(net))\n"
        "with ops.use_backend('torch'): io.Checkpoint('runs').restore(model=net, optimizer=optim.Adam(net))",
        needs=("torch",),
    ),
    Mistake("port, which writes in place", 0, "$PYTHON -m emberlint --help | grep -A3 '^ *port'", shell=True),
    Mistake("a folder that is not there", 1, f"{NET}io.save('runs/1/net.safetensors', net.state_dict())"),
    Mistake("save of Keras", 0, f"{NET}net.save('net.keras')"),
    Mistake("restore before anything was saved", 1, f"{NET}io.Checkpoint('runs').restore(model=net)"),
    Mistake("the parts of a checkpoint by position", 0, f"{NET}io.Checkpoint('runs').save(1, net, optim.Adam(net))"),
]
