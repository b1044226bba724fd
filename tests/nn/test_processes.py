"""The layer in a network that two processes train together, and as a program of torch's compiler."""

import copy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from sigmapca_cli.nn import LinearICA, SigmaPCA

WORKER = """
import os, sys, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
sys.path.insert(0, sys.argv[3])
from layers_for_processes import network, steps, batches
rank, folder = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
made = network()
steps(DistributedDataParallel(made), made, [batch[rank::2] for batch in batches()])
torch.save(made.state_dict(), f"{folder}/{rank}.pt")
dist.barrier()
os._exit(0)  # threads of gloo may still wait for the other process
"""


@pytest.mark.full
def test_two_processes_train_what_one_trains_on_whole_batches(tmp_path):
    from layers_for_processes import batches, network, steps

    helpers = str(Path(__file__).parents[1] / "helpers")
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(rank), str(tmp_path), helpers])
        for rank in range(2)
    ]
    alone = network()
    steps(alone, alone, batches())
    try:
        assert [worker.wait(timeout=120) for worker in workers] == [0, 0]
    finally:
        for worker in workers:
            worker.kill()
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    moved = network().state_dict()
    for name, value in alone.state_dict().items():
        torch.testing.assert_close(first[name], second[name], rtol=0, atol=0)
        torch.testing.assert_close(first[name], value, rtol=0, atol=1e-9)
    assert (first["layer.weight"] - moved["layer.weight"]).abs().max() > 1e-3
    assert (first["below.weight"] - moved["below.weight"]).abs().max() > 1e-3


DIVIDED = """
import os, sys, torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from sigmapca_cli.nn import LinearICA, SigmaPCA
rank, folder, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
torch.manual_seed(0)
with torch.device("meta"):
    last = LinearICA(8, 3) if kind == "LinearICA" else SigmaPCA(8, 3, a="auto", constraint=kind)
    network = nn.Sequential(nn.Linear(10, 8), last)
for each in (*network, network):
    fully_shard(each, mesh=mesh)
network.to_empty(device="cpu")
for each in network:
    each.reset_parameters()
whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
before = get_model_state_dict(network, options=whole)
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
network[1].constrain_after(optimizer)
rows = torch.randn(4, 64, 10, generator=torch.Generator().manual_seed(1))
for batch in rows:
    optimizer.zero_grad()
    network[1](network[0](batch[rank::2]), return_loss=True)[1].backward()
    optimizer.step()
after = get_model_state_dict(network, options=whole)
if rank == 0:  # the others have none
    torch.save([before, after], f"{folder}/states.pt")
dist.barrier()
os._exit(0)
"""


@pytest.mark.full
@pytest.mark.parametrize("kind", ["unit_norm", "symmetric", "LinearICA"])
def test_a_layer_that_fsdp_divides_trains_from_the_meta_device_and_keeps_its_constraint(tmp_path, kind):
    """Two processes have half of each weight; the saved state is the whole, and an ordinary layer reads it."""
    started = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", DIVIDED, str(rank), str(tmp_path), kind])
        for rank in range(2)
    ]
    try:
        assert [worker.wait(timeout=120) for worker in started] == [0, 0]
    finally:
        for worker in started:
            worker.kill()
    before, after = torch.load(tmp_path / "states.pt", weights_only=True)
    layer = LinearICA(8, 3) if kind == "LinearICA" else SigmaPCA(8, 3, a="auto", constraint=kind)
    layer.load_state_dict({name[2:]: value for name, value in after.items() if name.startswith("1.")})
    gram = layer.weight.T @ layer.weight
    expected = torch.eye(3) if kind == "symmetric" else gram - torch.diag(gram.diag() - 1)
    torch.testing.assert_close(gram, expected, atol=1e-5, rtol=0)
    if kind == "LinearICA":
        torch.testing.assert_close(layer.rotation.T @ layer.rotation, torch.eye(3), atol=1e-5, rtol=0)
    assert (after["1.weight"] - before["1.weight"]).abs().max() > 1e-3
    assert (after["0.weight"] - before["0.weight"]).abs().max() > 1e-3


@pytest.mark.full
@pytest.mark.skipif(
    not shutil.which("g++"), reason="skipped: torch.compile needs a C++ compiler, there is no g++"
)
def test_the_compiler_makes_a_program_of_it():
    """Its values; the gradients of the same graph are compared in test_layer.py, without the minute of a compiler."""
    x = torch.randn(256, 10, generator=torch.Generator().manual_seed(0)) * torch.arange(1, 11)
    plain = SigmaPCA(10, 4).init_pca(x)
    traced = copy.deepcopy(plain)
    compiled = torch.compile(traced.loss, fullgraph=True)
    with torch.no_grad():
        for batch in x.split(128):
            torch.testing.assert_close(compiled(batch), plain.loss(batch), rtol=1e-4, atol=0)
    torch.testing.assert_close(plain.variance, traced.variance, rtol=1e-4, atol=1e-4)
