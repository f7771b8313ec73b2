"""Writes the .pt files that tests/io/torch_pickle_test.cpp reads: pip install torch (2.x), then run this script."""
import argparse
import collections
import pathlib
import pickle
import zipfile

import torch

HERE = pathlib.Path(__file__).parent
WEIGHT, BIAS = torch.arange(6.0).reshape(2, 3), torch.tensor([10.0, 11.0])


def linear():
    module = torch.nn.Linear(3, 2)
    module.load_state_dict({"weight": WEIGHT, "bias": BIAS})
    return module


def change_pickle(name, source, change):
    """A copy of the archive `source` with its data.pkl changed."""
    with zipfile.ZipFile(HERE / source) as old, zipfile.ZipFile(HERE / name, "w", zipfile.ZIP_STORED) as new:
        for entry in old.namelist():
            data = old.read(entry)
            new.writestr(entry, change(data) if entry.endswith("data.pkl") else data)


torch.save(linear().state_dict(), HERE / "plain.pt")
torch.save({"epoch": 3, "lr": 0.1, "args": argparse.Namespace(model="vit"), "history": [1, 2.5, None, True, 2**80],
            "model": collections.OrderedDict(("module." + k, v) for k, v in linear().state_dict().items())},
           HERE / "nested.pt", pickle_protocol=4)
base = torch.arange(12.0).reshape(3, 4)
TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
         torch.float16, torch.bfloat16, torch.float32, torch.float64]
torch.save({"parameter": torch.nn.Parameter(WEIGHT), "transposed": base.t(), "row": base[1], "empty": torch.zeros(0, 3),
            "scalar": torch.tensor(7.0), **{str(dtype): torch.arange(3).to(dtype) for dtype in TYPES}}, HERE / "views.pt")
torch.save(linear(), HERE / "module.pt")
torch.save([1, 2], HERE / "list.pt")
torch.save({"sparse": WEIGHT.to_sparse()}, HERE / "sparse.pt")
torch.save(linear().state_dict(), HERE / "legacy.pt", _use_new_zipfile_serialization=False)
torch.jit.script(linear()).save(str(HERE / "script.pt"))
# Hostile: a million nested tuples; sizes beyond the storage; a call of os.system, which must not happen.
change_pickle("deep.pt", "plain.pt", lambda data: b"\x80\x02)" + b"\x85" * 1000000 + b".")
change_pickle("beyond.pt", "plain.pt", lambda data: data.replace(b"K\x02K\x03\x86", b"M\xff\xffK\x03\x86"))


class Evil:
    def __reduce__(self):
        import os
        return os.system, ("touch sparsight-was-here",)


change_pickle("evil.pt", "plain.pt", lambda data: pickle.dumps({"state_dict": Evil()}, protocol=2))
with zipfile.ZipFile(HERE / "deep.pt") as old, zipfile.ZipFile(HERE / "deflated.zip", "w", zipfile.ZIP_DEFLATED) as new:
    for entry in old.namelist():
        new.writestr(entry, old.read(entry))
(HERE / "deflated.zip").replace(HERE / "deep.pt")
