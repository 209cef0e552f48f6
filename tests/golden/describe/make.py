#!/usr/bin/env python3
"""Makes the files beside it, with the packages that own the formats: NumPy 2.4.6, PyTorch 2.13.0, SciPy 1.17.1, netCDF4 1.7.5 (netCDF-C 4.10). src/describe's tests know what is in them.

Every array counts up by one from a number of its own, so that a test sees from its first number that the right bytes were found.
Usage: in an environment with these packages: python3 make.py
"""
import collections
import io
import os
import sys
import warnings
import zipfile

import netCDF4
import numpy as np
import torch
from scipy.io import netcdf_file

HERE = os.path.dirname(os.path.abspath(__file__))
warnings.filterwarnings("ignore")


def path(name):
    return os.path.join(HERE, name)


def counted(first, shape, dtype):
    return (first + np.arange(np.prod(shape, dtype=int))).astype(dtype).reshape(shape)


def numpy_files():
    arrays = {"density": counted(100, (2, 3, 4), "<f8"), "velocity/x": counted(200, (5,), ">f4"), "ids": counted(300, (2, 3), "<i8").T, "empty": np.zeros((0, 3)), "step": np.int32(400)}
    np.savez(path("arrays.npz"), **arrays)
    np.savez_compressed(path("compressed.npz"), **arrays)


def tensor(first, shape, dtype):
    return (first + torch.arange(int(np.prod(shape)))).to(dtype).reshape(shape)


def torch_object(protocol):
    weight = tensor(10, (3, 4), torch.float32)
    base = tensor(100, (8,), torch.float64)
    image = tensor(30, (2, 3, 4), torch.int32)
    model = collections.OrderedDict(weight=torch.nn.Parameter(weight), tied=weight, bias=tensor(20, (4,), torch.bfloat16))
    last = image.permute(2, 0, 1)
    views = {"head": base[:1], "left": base[:2], "right": base[3:], "over": base[1:5], "odd": tensor(50, (6,), torch.int16)[::2], "last": last, "again": last}
    others = [tensor(60, (5,), torch.uint16), tensor(1, (2, 2), torch.complex64), tensor(70, (3,), torch.uint8), torch.zeros(0, 3), tensor(80, (4,), torch.float8_e4m3fn)]
    return {"model": model, **({"views": views} if protocol == 2 else {"others": others}), "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"lr": 1e-3, "betas": (0.9, 0.99), "params": [0]}]}}


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(tensor(10, (2, 3), torch.float32))

    def forward(self, x):
        return x * self.scale


def torch_files():
    for protocol in (2, 4):
        torch.save(torch_object(protocol), path(f"protocol{protocol}.pt"), pickle_protocol=protocol)
    linear = torch.nn.Linear(3, 2)
    linear.weight = torch.nn.Parameter(tensor(10, (2, 3), torch.float32))
    linear.bias = torch.nn.Parameter(tensor(20, (2,), torch.float32))
    torch.save(linear, path("module.pt"))
    # A script tells in which file its source was: of this one only the name.
    torch._jit_internal.inspect.getsourcefile = lambda of, real=torch._jit_internal.inspect.getsourcefile: os.path.basename(real(of) or "")
    script = torch.jit.script(Scaled())
    script.save(path("script.pt"))
    # As a machine of the other byte order writes it: no package does so here, but PyTorch reads it.
    made = io.BytesIO()
    torch.save({"a": tensor(10, (2, 3), torch.float32)}, made)
    with zipfile.ZipFile(made) as archive, zipfile.ZipFile(path("big.pt"), "w") as swapped:
        for entry in archive.infolist():
            content = archive.read(entry)
            if entry.filename.endswith("/byteorder"):
                content = b"big"
            if "/data/" in entry.filename:
                content = np.frombuffer(content, "<f4").astype(">f4").tobytes()
            swapped.writestr(zipfile.ZipInfo(entry.filename), content)
    assert torch.load(path("big.pt"))["a"].flatten().tolist() == list(range(10, 16))


def netcdf_content(file, create, last_type):
    """Two variables by record, three not; a text in each."""
    for name, length in (("time", None), ("x", 3), ("y", 5)):
        file.createDimension(name, length)
    title = "a title"
    file.title = title
    create("grid", "f8", ("x", "y"))[:] = counted(100, (3, 5), "f8")
    create("label", "S1", ("y",))[:] = np.frombuffer(b"hello", "S1")
    create("odd", "i2", ("x",))[:] = counted(200, (3,), "i2")
    field, step, word = create("field", "f4", ("time", "x", "y")), create("step", last_type, ("time", "x")), create("word", "S1", ("time", "x"))
    for record in range(2):
        field[record] = counted(300 + 100 * record, (3, 5), "f4")
        step[record] = counted(30 + 10 * record, (3,), last_type)
        word[record] = np.frombuffer(b"abc", "S1")


def netcdf_files():
    for version in (1, 2):
        with netcdf_file(path(f"cdf{version}.nc"), "w", version=version) as file:
            netcdf_content(file, file.createVariable, "i2")
    with netCDF4.Dataset(path("cdf5.nc"), "w", format="NETCDF3_64BIT_DATA") as file:
        netcdf_content(file, file.createVariable, "u8")
    with netCDF4.Dataset(path("alone.nc"), "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("only", "i2", ("time", "x"))[:] = counted(100, (5, 3), "i2")


if __name__ == "__main__":
    numpy_files()
    torch_files()
    netcdf_files()
    sys.exit(max(os.path.getsize(path(name)) for name in os.listdir(HERE) if not name.endswith(".py")) > 4096)
