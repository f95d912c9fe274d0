"""Training in two processes of DistributedDataParallel, each with half of the batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing import assert_close

# Fresh processes: in a fork PyTorch's threads may wait for ever. Gloo's may abort a normal exit.
START = """
import importlib, os, sys
sys.path.insert(0, sys.argv[1])
module = importlib.import_module(sys.argv[2])
from torch_tests.two_processes import work
work(getattr(module, sys.argv[3]), getattr(module, sys.argv[4]), int(sys.argv[5]), sys.argv[6])
os._exit(0)
"""


def derivatives(model, given):
    """The loss, and what it gives to each parameter."""
    model.zero_grad()
    loss = model(*given)
    loss.backward()
    return [loss.detach(), *(p.grad.clone() for p in model.parameters())]


def work(model, halves, rank, folder):
    """One of two processes: its half of the batch, and the derivatives after DDP's mean."""
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/rendezvous", rank=rank, world_size=2)
    try:
        parallel = nn.parallel.DistributedDataParallel(model())
        found = derivatives(parallel, halves(rank))[1:]
        if rank == 0:
            torch.save(found, os.path.join(folder, "found.pt"))
    finally:
        dist.destroy_process_group()


def check_two_processes(model, halves, folder):
    """Two processes find the mean of what each half gives alone; both are a module's functions."""
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    # The tests as a package of their own name, wherever pytest found them.
    (folder / "torch_tests").symlink_to(Path(__file__).parent, target_is_directory=True)
    name = "torch_tests." + Path(sys.modules[halves.__module__].__file__).stem
    own = [sys.executable, "-c", START, str(folder), name, model.__name__, halves.__name__]
    both = [subprocess.Popen([*own, str(rank), str(folder)]) for rank in range(2)]
    try:
        assert [process.wait(180) for process in both] == [0, 0]
    finally:
        for process in both:
            process.kill()
    alone = model()
    first, second = (derivatives(alone, halves(rank))[1:] for rank in range(2))
    found = torch.load(folder / "found.pt")
    for ours, a, b in zip(found, first, second, strict=True):
        assert_close(ours, (a + b) / 2)
