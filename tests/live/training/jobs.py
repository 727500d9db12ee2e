"""Jobs for tests, as scripts."""

from __future__ import annotations

COUNTING = """
import sys, time
import fairway

total, seconds, trace = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
run = fairway.leased(range(total), checkpoint=lambda step: {"sum": done})
done = run.state["sum"] if run.state is not None else 0
with open(trace, "a", buffering=1) as file:
    for batch in run:
        done += batch
        file.write(f"{batch}\\n")
        time.sleep(seconds)
print("the sum is", done)
"""
"""Does `total` steps of `seconds` each, writes down every step it does, and adds up the numbers of the batches."""

GANG = """
import os, random, sys, time
import fairway

total, trace = int(sys.argv[1]), sys.argv[2] + os.environ["FAIRWAY_RANK"]
draw = random.Random(os.environ["FAIRWAY_RANK"])
with open(trace, "a", buffering=1) as file:
    for batch in fairway.leased(range(total), checkpoint=lambda step: {"step": step}):
        file.write(f"{batch}\\n")
        time.sleep(draw.uniform(0, 0.01))
"""
"""A gang whose ranks go at different speeds."""

RENDEZVOUS = """
import os, socket, time

rank, size = int(os.environ["FAIRWAY_RANK"]), int(os.environ["FAIRWAY_WORLD_SIZE"])
address = os.environ["FAIRWAY_MASTER_ADDR"], int(os.environ["FAIRWAY_MASTER_PORT"])
if rank == 0:
    with socket.create_server(address) as server:
        for _ in range(size - 1):
            other, _ = server.accept()
            print("met", other.recv(100).decode())
            other.sendall(b"rank 0")
            other.close()
else:
    for _ in range(1000):
        try:
            with socket.create_connection(address) as to:
                to.sendall(f"rank {rank}".encode())
                print("met", to.recv(100).decode())
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
"""

STUBBORN = """
import signal, time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
while True:
    time.sleep(1)
"""

DATA_PARALLEL = """
import time
import torch, torch.distributed as dist
import fairway

dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
run = fairway.leased(range(60), checkpoint=lambda step: model.module.state_dict())
if run.state is not None:
    model.module.load_state_dict(run.state)
for batch in run:
    time.sleep(0.02)
    optimizer.zero_grad()
    (model(torch.randn(8, 4)) - 1).pow(2).mean().backward()
    optimizer.step()
print("weights", [round(value, 6) for value in model.module.weight.flatten().tolist()])
dist.destroy_process_group()
"""
