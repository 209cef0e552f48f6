#!/usr/bin/env python3
"""A small language model, really trained, as files for `make bench-codecs`: what an optimiser keeps of it beside the weights is most of a checkpoint, and no random numbers are like either.

A transformer of bytes learns a text for some steps of Adam (about two minutes on two cores), and leaves below FOLDER, as safetensors:
  checkpoint/{weights-bf16,master-f32,exp_avg-f32,exp_avg_sq-f32}/model.safetensors   what a training in mixed precision keeps
  weights-fp8/model.safetensors                                                       the weights as E4M3, scaled by tensor
With --older also FOLDER/older-N/checkpoint, of N steps before.
Then: make bench-codecs ARGS='FOLDER/checkpoint FOLDER/checkpoint/* FOLDER/weights-fp8'; cairn_codecs --base FOLDER/older-N/checkpoint FOLDER/checkpoint. Needs torch (CPU), and nothing else.
"""
import argparse
import json
import os
import struct
import time

import torch
from torch import nn
from torch.nn import functional

DTYPES = {torch.bfloat16: "BF16", torch.float32: "F32", torch.float8_e4m3fn: "F8_E4M3"}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (each.view(batch, length, self.heads, -1).transpose(1, 2) for each in self.qkv(self.before_attention(x)).split(width, dim=2))
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.before_mlp(x))))


class Model(nn.Module):
    def __init__(self, layers, width, heads, context):
        super().__init__()
        self.byte, self.place = nn.Embedding(256, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, text):
        x = self.byte(text) + self.place(torch.arange(text.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def text_below(folders, most):
    """The text files below some folders, one after the other by name."""
    text = bytearray()
    for folder in folders:
        for path in sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith((".cpp", ".hpp", ".py", ".md", ".txt", "copyright"))):
            with open(path, "rb") as file:
                text += file.read(most - len(text))
    return torch.tensor(list(text), dtype=torch.uint8)


def train(model, text, options, keep):
    """`keep` is called with each number of steps that are still to come, after each step."""
    adam = torch.optim.AdamW(model.parameters(), lr=options.rate, betas=(0.9, 0.95), weight_decay=0.1)
    begun = time.monotonic()
    for step in range(options.steps):
        for group in adam.param_groups:
            group["lr"] = options.rate * min(1, (step + 1) / 20)
        at = torch.randint(len(text) - options.context - 1, (options.batch,))
        some = torch.stack([text[begin:begin + options.context + 1] for begin in at]).long()
        loss = functional.cross_entropy(model(some[:, :-1]).flatten(0, 1), some[:, 1:].flatten())
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        keep(options.steps - step - 1, adam)
        if step % 20 == 0 or step + 1 == options.steps:
            print(f"step {step}: loss {loss.item():.3f}, {time.monotonic() - begun:.0f} s", flush=True)
        if time.monotonic() - begun > options.seconds:
            break
    return adam


def save(path, tensors):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    header, bodies, at = {}, [], 0
    for name, tensor in tensors.items():
        body = bytes(tensor.detach().contiguous().view(torch.uint8).flatten().tolist())
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(body)]}
        bodies.append(body)
        at += len(body)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(bodies))


def to_fp8(tensor):
    return (tensor * (448 / tensor.abs().max().clamp(min=1e-12))).to(torch.float8_e4m3fn)


def save_checkpoint(folder, weights, adam):
    checkpoint = {"weights-bf16": {name: weight.to(torch.bfloat16) for name, weight in weights.items()}, "master-f32": weights}
    for moment in ("exp_avg", "exp_avg_sq"):
        checkpoint[moment + "-f32"] = {name: adam.state[weight][moment] for name, weight in weights.items()}
    for name, tensors in checkpoint.items():
        save(os.path.join(folder, "checkpoint", name, "model.safetensors"), tensors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--text", nargs="+", default=[os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")], help="folders with text to learn (this repository)")
    parser.add_argument("--text-bytes", type=int, default=8 << 20)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=120, help="no step begins later")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--older", type=int, nargs="+", default=[], metavar="N", help="checkpoints of so many steps before the last, too")
    options = parser.parse_args()
    torch.manual_seed(1)
    model = Model(options.layers, options.width, options.heads, options.context)
    weights = dict(model.named_parameters())
    older = lambda left, adam: left in options.older and save_checkpoint(os.path.join(options.folder, f"older-{left}"), weights, adam)
    adam = train(model, text_below(options.text, options.text_bytes), options, older)
    save_checkpoint(options.folder, weights, adam)
    save(os.path.join(options.folder, "weights-fp8", "model.safetensors"), {name: to_fp8(weight) for name, weight in weights.items()})


if __name__ == "__main__":
    main()
