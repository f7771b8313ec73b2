"""What the library computes for a Layer (layers.py), as {name: array} under the names of docs/moe.md: through the Python package,
or through `sparsight moe`."""
import json
import os
import re
import subprocess

import numpy as np
import torch

import sparsight

DTYPES = {"F64": np.float64, "F32": np.float32, "I64": np.int64, "BOOL": np.bool_}


def _given_tokens(layer, padding):
    """Padding may hold anything."""
    x = layer.x.copy()
    if layer.valid is not None:
        x[~layer.valid] = padding
    return x.reshape(layer.images, layer.per_image, -1)


def through_package(layer, router):
    """router: a sparsight.Router in float64, whose weights are set here."""
    experts = sparsight.MoEMLP(layer.x.shape[1], layer.mlp[0].shape[2], layer.experts, router=router).double()
    with torch.no_grad():
        for name, value in layer.weights.items():
            getattr(router, name).copy_(torch.as_tensor(value))
        for name, value in zip(("w1", "b1", "w2", "b2"), layer.mlp):
            getattr(experts.experts, name).copy_(torch.as_tensor(value))
    experts.train(layer.training)
    shape = (layer.images, layer.per_image)
    given = {name: None if value is None else torch.as_tensor(value).reshape(shape) for name, value in
             (("valid", layer.valid), ("token_id", layer.token_id), ("priority", layer.priority))}
    if not router.soft:
        given["samples"] = {name: torch.as_tensor(value) for name, value in layer.samples.items()}
    with torch.no_grad():
        y, r = experts(torch.as_tensor(_given_tokens(layer, np.nan)), return_routing=True,
                       target=None if layer.target is None else torch.as_tensor(layer.target), **given)
    output = y.numpy().reshape(layer.x.shape)
    if router.soft:
        return {"logits": r.logits.numpy(), "dispatch": r.dispatch.numpy(), "combine": r.combine.numpy(), "output": output}
    out, made = {}, (r.expert >= 0).numpy()
    for name in ("token", "expert", "rank", "gate", "kept"):
        out[name] = getattr(r, name).numpy()[made]
    out["chosen_count"] = r.chosen_count.numpy()
    for name, value in (("clean_logits", r.logits), ("scores", r.scores)):
        if len(value) or layer.tokens == 0:
            out[name] = value.numpy()
    if router.groups:
        out["groups.scores"], out["groups.chosen"] = r.group_scores.numpy(), r.group_chosen.numpy()
    out.update({f"metric.{name}": value.numpy() for name, value in r.metrics.items()})
    out.update({f"loss.{name}": value.numpy() for name, value in r.losses.items()})
    out.update({f"loss_weight.{name}": np.float64(value) for name, value in router.loss_weights.items()})
    return {**out, "loss": r.loss.numpy(), "output": output}


def write_safetensors(path, tensors):
    header, blob = {}, b""
    for name, value in tensors.items():
        value = np.ascontiguousarray(value).reshape(np.shape(value))
        kind = next(kind for kind, dtype in DTYPES.items() if dtype == value.dtype)
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [len(blob), len(blob) + value.nbytes]}
        blob += value.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + blob)


def read_safetensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    return {name: np.frombuffer(body[slice(*entry["data_offsets"])], DTYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


def _toml(sections):
    return "\n".join(f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in section.items())
                     for name, section in sections.items())


def through_program(layer, folder):
    """Writes the layer's files into `folder` and runs `sparsight moe` on them."""
    sections = {"moe": {"experts": layer.experts, "hidden": layer.mlp[0].shape[2]},
                "router": {"name": layer.router, **layer.chosen}, "capacity": layer.capacity,
                "losses": {**layer.losses, **layer.variants}}
    (folder / "layer.toml").write_text(_toml(sections))
    tensors = {"tokens": _given_tokens(layer, 7.5), **{f"router.{name}": value for name, value in layer.weights.items()},
               **{f"experts.{name}": value for name, value in zip(("w1", "b1", "w2", "b2"), layer.mlp)}}
    for name in ("valid", "token_id", "target", "priority"):
        if getattr(layer, name) is not None:
            tensors[name] = getattr(layer, name)
    tensors.update({f"noise.{name}": value for name, value in layer.used_samples().items()})
    write_safetensors(folder / "in.safetensors", tensors)
    command = [os.environ["SPARSIGHT_PROGRAM"], "moe", "in.safetensors", "--config", "layer.toml", "--float64", "--prefix",
               str(layer.prefix), "--mode", "train" if layer.training else "eval", "--out", "out.safetensors"]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=one_thread)
    if run.returncode:
        raise AssertionError(f"sparsight moe exited with {run.returncode}: {run.stderr.strip()}")
    out = read_safetensors(folder / "out.safetensors")
    # Weights are the input; gradients are checked against finite differences elsewhere.
    out = {name: value for name, value in out.items() if not name.startswith(("router.", "experts.", "grad."))}
    out["output"] = out["output"].reshape(layer.x.shape)
    printed = re.findall(r"((?:CV|max/mean|mean top|experts per)[ \w()]*?) +([0-9.]+)", run.stdout)
    return out, dict(printed)
