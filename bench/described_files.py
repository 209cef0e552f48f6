#!/usr/bin/env python3
"""How much of the bytes of a model's checkpoints, and of arrays, `cairn describe` describes: files of some tens of MB, made by PyTorch, safetensors and numpy.

Usage: bench/described_files.py build/release/bin/cairn     makes the table in bench/results/described.txt, in half a minute; needs torch, safetensors and numpy in the Python that runs it
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import save_file

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from report import table  # noqa: E402

WANTED = 99.0


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(width, 6, batch_first=True)
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)

    def forward(self, x):
        normal = self.first(x)
        x = x + self.attention(normal, normal, normal, need_weights=False)[0]
        return x + self.narrow(torch.relu(self.wide(self.second(x))))


def write_model(folder, width=384, words=4096, layers=6):
    """Its optimizer has made three steps, so that it has moments of each weight."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Embedding(words, width), *[Block(width) for _ in range(layers)], torch.nn.Linear(width, words))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randint(0, words, (4, 32))).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    weights = {name: value.contiguous() for name, value in model.state_dict().items()}
    torch.save(weights, f"{folder}/weights.pt")
    torch.save({"model": weights, "optimizer": optimizer.state_dict(), "step": 3, "random": torch.get_rng_state()}, f"{folder}/training.pt")
    save_file(weights, f"{folder}/weights.safetensors")
    for name, kind in (("bf16", torch.bfloat16), ("fp8", torch.float8_e4m3fn)):
        shorter = {name: value.to(kind) for name, value in weights.items()}
        torch.save(shorter, f"{folder}/{name}.pt")
        save_file(shorter, f"{folder}/{name}.safetensors")


def write_arrays(folder):
    field = np.random.default_rng(1).standard_normal((128, 192, 256))
    np.save(f"{folder}/field.npy", field)
    np.save(f"{folder}/field-big-endian.npy", np.asfortranarray(field.astype(">f4")))
    np.save(f"{folder}/records.npy", np.zeros(400_000, np.dtype([("x", "<f8"), ("y", "<f8"), ("id", "<i4"), ("kind", "u1")])))
    np.savez(f"{folder}/fields.npz", a=field, b=field.astype("f4"), c=np.arange(1_000_000))


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_model(folder)
        write_arrays(folder)
        files = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        seen = json.loads(subprocess.run([sys.argv[1], "describe", "--json", *files], capture_output=True, text=True, check=True).stdout)["files"]
        share = {each["file"]: 100 * each["described_bytes"] / os.path.getsize(each["file"]) for each in seen}
        print(table(["file", "MB", "arrays", "described"], [[os.path.basename(each["file"]), f"{os.path.getsize(each['file']) / 1e6:.1f}", f"{len(each['extents'])}", f"{share[each['file']]:.3f} %"]
                                                            for each in seen]))
        print(f"\nat least {min(share.values()):.3f} %, wanted {WANTED} %")
        return 0 if min(share.values()) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
