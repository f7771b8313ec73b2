"""Engines that run a vision transformer: each is a function of (model of vit.py, pixels, options) that returns a function
without arguments, one run. They raise ImportError where their package is missing.

As a program, one engine in a process of its own, driven by models.py: a JSON object per line in and out.
"""

import importlib.util
import json
import os
import sys
import tempfile
import time

import torch
import torch.nn.functional as F

from vit import from_file, read_safetensors

TOLERANCE = {"fp32": 1e-3, "bf16": 5e-2}  # of the largest logit


class SkippedError(Exception):
    """The engine cannot run this case; says why."""


def autocast(options):
    return torch.autocast("cpu", torch.bfloat16, enabled=options["type"] == "bf16")


def eager(model, pixels, options):
    def run():
        with torch.inference_mode(), autocast(options):
            return model(pixels)

    return run


def compiled(model, pixels, options):
    import torch._inductor.config as inductor

    inductor.freezing = True  # weights are constants: packed for oneDNN or MKL
    fast = torch.compile(model, dynamic=False)

    def run():
        with torch.no_grad(), autocast(options):
            return fast(pixels)

    return run


class PackedLinear(torch.nn.Module):
    """oneDNN's linear layer on a weight packed once, with GELU fused where `attribute` says so."""

    def __init__(self, linear, rows, attribute="none"):
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), rows)
        self.bias, self.attribute = linear.bias, attribute

    def forward(self, x):
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, self.attribute, [], "none")


def onednn(model, pixels, options):
    if options["type"] != "fp32":
        raise SkippedError("measured in fp32 only")
    rows = pixels.shape[0] * model.pos_embed.shape[1]
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.Linear) and name != "router":
                fused = name == "fc1"
                setattr(module, name, PackedLinear(child, rows, "gelu" if fused else "none"))
        if type(module).__name__ == "Mlp":
            module.forward = lambda x, mlp=module: mlp.fc2(mlp.fc1(x))
    return eager(model, pixels, options)


def onnx_file(model, pixels, folder):
    path = os.path.join(folder, "model.onnx")
    with torch.no_grad():
        torch.onnx.export(model, (pixels,), path, dynamo=False, opset_version=18, input_names=["x"], output_names=["y"])
    return path


def onnxruntime(model, pixels, options):
    import onnxruntime as ort

    if options["type"] != "fp32":
        raise SkippedError("measured in fp32 only")
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = options["threads"]
    with tempfile.TemporaryDirectory() as folder:
        session = ort.InferenceSession(onnx_file(model, pixels, folder), settings, providers=["CPUExecutionProvider"])
    array = pixels.numpy()
    return lambda: session.run(None, {"x": array})[0]


def openvino(model, pixels, options):
    import openvino as ov

    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "INFERENCE_NUM_THREADS": options["threads"],
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "bf16" if options["type"] == "bf16" else "f32",
        }
        request = ov.Core().compile_model(onnx_file(model, pixels, folder), "CPU", settings).create_infer_request()
    array = pixels.numpy()
    return lambda: request.infer([array])[request.model_outputs[0]]


def ncnn(model, pixels, options):
    import ncnn as library
    import pnnx

    if options["type"] != "fp32" or pixels.shape[0] != 1 or options["routing"] != "dense":
        raise SkippedError("measured on one image, dense, in fp32 only (its converter takes nothing else)")
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        pnnx.export(model, os.path.join(folder, "model.pt"), pixels, fp16=False)
        net = library.Net()
        net.opt.num_threads = options["threads"]
        net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
        if net.load_param(os.path.join(folder, "model.ncnn.param")) or net.load_model(os.path.join(folder, "model.ncnn.bin")):
            raise SkippedError("its converter's files do not load")
    array = library.Mat(pixels[0].numpy())

    def run():
        extractor = net.create_extractor()
        extractor.input("in0", array)
        return torch.from_numpy(extractor.extract("out0")[1].numpy().copy())[None]

    return run


def litert(model, pixels, options):
    import ai_edge_litert.interpreter as interpreter

    converter = next((name for name in ("litert_torch", "ai_edge_torch") if importlib.util.find_spec(name)), None)
    if not converter:
        raise SkippedError("needs the converter litert-torch")
    if options["type"] != "fp32" or options["routing"] != "dense":
        raise SkippedError("measured dense and in fp32 only (its format has no rows of varying number)")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.tflite")
        importlib.import_module(converter).convert(model, (pixels,)).export(path)
        runner = interpreter.Interpreter(model_path=path, num_threads=options["threads"])
    runner.allocate_tensors()
    (given,), (out,) = runner.get_input_details(), runner.get_output_details()

    def run():
        runner.set_tensor(given["index"], pixels.numpy())
        runner.invoke()
        return runner.get_tensor(out["index"])

    return run


FORWARD = {
    "PyTorch": eager,
    "PyTorch oneDNN": onednn,
    "torch.compile": compiled,
    "ONNX Runtime": onnxruntime,
    "OpenVINO": openvino,
    "LiteRT": litert,
    "ncnn": ncnn,
}


def train_eager(model, pixels, labels, options, compile_model=False):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05)
    forward = torch.compile(model, dynamic=False) if compile_model else model

    def run():
        with autocast(options):
            logits = forward(pixels)
        loss = F.cross_entropy(logits.float(), labels) + model.auxiliary_loss()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return run


def train_compiled(model, pixels, labels, options):
    return train_eager(model, pixels, labels, options, compile_model=True)


class LinearByOnednn(torch.autograd.Function):
    """A linear layer whose output and input gradient are oneDNN's. (Its weight gradient is slower than MKL's, which F.linear
    has too.) oneDNN's operator has no gradient of its own."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        rows = grad.flatten(0, -2)
        x_grad = torch.ops.mkldnn._linear_pointwise(grad.contiguous(), weight.t(), None, "none", [], "")
        return x_grad, rows.t() @ x.flatten(0, -2), rows.sum(0) if ctx.needs_input_grad[2] else None


def train_onednn(model, pixels, labels, options):
    if options["type"] != "fp32":
        raise SkippedError("measured in fp32 only")
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.forward = lambda x, linear=module: LinearByOnednn.apply(x, linear.weight, linear.bias)
    return train_eager(model, pixels, labels, options)


def train_tutel(model, pixels, labels, options):
    """GMoE's layers as its code has them, by Tutel. Where capacity drops tokens, rounding decides between equal ones: the
    outputs are compared without drops."""
    if options["routing"] != "gmoe":
        raise SkippedError("it is for GMoE's layers")
    from gmoe_tutel import set_capacity, with_tutel  # where Tutel is installed

    model.eval()
    with torch.no_grad():
        capacity = set_capacity(model, len(model.blocks[-2].mlp.experts))
        expected = model(pixels)
        model = with_tutel(model).eval()
        checked(lambda: model(pixels), expected, "output", TOLERANCE["fp32"])
        set_capacity(model, capacity)
    return train_eager(model.train(), pixels, labels, options)


TRAINING = {
    "PyTorch": train_eager,
    "PyTorch oneDNN": train_onednn,
    "torch.compile": train_compiled,
    "Tutel": train_tutel,
}


def gradient_eager(model, pixels, labels, options, compile_model=False):
    """The gradient of the summed cross entropy with respect to the pixels, as attacks take it; none of weights."""
    model.requires_grad_(False)
    forward = torch.compile(model, dynamic=False) if compile_model else model

    def run():
        x = pixels.detach().requires_grad_(True)
        with autocast(options):
            logits = forward(x)
        return torch.autograd.grad(F.cross_entropy(logits.float(), labels, reduction="sum"), x)[0]

    return run


def gradient_compiled(model, pixels, labels, options):
    return gradient_eager(model, pixels, labels, options, compile_model=True)


INPUT_GRADIENT = {"PyTorch": gradient_eager, "torch.compile": gradient_compiled}


def checked(run, expected, what, tolerance):
    """Runs twice (the second without building anything); raises SkippedError if the result is another."""
    first = torch.as_tensor(run()).detach().float().clone()
    error = float((first - expected).abs().max() / expected.abs().max())
    if not error <= tolerance:
        raise SkippedError(f"its {what} differs from ours by {error:.1e} of the largest value")
    run()
    return error


def prepare(name, case):
    tensors = read_safetensors(os.path.join(case["folder"], "model.safetensors"))
    pixels, labels = tensors.pop("pixels"), tensors.pop("labels")
    model = from_file(tensors, case["size"], case["patch"], case["routing"])
    ours = read_safetensors(os.path.join(case["folder"], "ours.safetensors"))
    if case["training"]:
        with torch.no_grad(), autocast(case):
            checked(lambda: model(pixels), ours["logits"], "output", TOLERANCE[case["type"]])
        run = TRAINING[name](model.train(), pixels, labels, case)
        if model.is_random:  # equal in evaluation; no two engines have the same samples
            return run, float((run() - case["loss"]).abs()) / abs(case["loss"])
        return run, checked(run, torch.tensor(case["loss"]), "loss", TOLERANCE[case["type"]])
    if case["input_gradient"]:
        run = INPUT_GRADIENT[name](model, pixels, labels, case)
        return run, checked(run, ours["gradient"], "gradient", TOLERANCE[case["type"]])
    expected = ours["logits"]
    run = FORWARD[name](model, pixels, case)
    return run, checked(run, expected, "output", TOLERANCE[case["type"]])


def answer(name, asked, state):
    if "runs" in asked:
        start = time.perf_counter()
        for _ in range(asked["runs"]):
            state["run"]()
        return {"seconds": (time.perf_counter() - start) / asked["runs"]}
    state["run"] = None
    if not asked:
        return {}
    torch.set_num_threads(asked["threads"])
    torch._dynamo.reset()
    try:
        state["run"], error = prepare(name, asked)
        return {"error": error}
    except SkippedError as reason:
        return {"skipped": str(reason)}
    except Exception as error:  # whatever an engine does not support
        lines = str(error).strip().splitlines() or [""]
        return {"skipped": f"{type(error).__name__}: {lines[0][:160]}"}


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # engines print to stdout
    state = {}
    for line in sys.stdin:
        print(json.dumps(answer(sys.argv[1], json.loads(line), state)), file=out, flush=True)


if __name__ == "__main__":
    main()
