"""Runtimes that run a model's file on NumPy arrays: each is a function of a case, which mobile_models.py makes, that
returns a function of pixels [B,C,H,W], which returns logits [B,K]. It raises ImportError where its package is missing.
What a runtime makes of the ONNX file is kept in the case's folder.

As a program, one runtime in a process of its own, driven by mobile.py:
  runtimes.py NAME               a line of JSON in, a line out: a case, {"runs": N}, {"memory": true}
  runtimes.py NAME --once FILE   the first answer of the case in FILE, and what the process is then ("none": only NumPy)
"""

import importlib.util
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import numpy as np

# The largest difference of an image's logits from ours in fp32, as a share of its largest logit; the median of images,
# since rounding may choose another expert. int8 rounds random weights, without any training.
TOLERANCE = {"fp32": 1e-3, "bf16": 5e-2, "int8": 0.2}
CALIBRATION_IMAGES = 16


class SkippedError(Exception):
    """The runtime cannot run this case; says why."""


def make_patterns(count, channels, seed):
    """Coarse random images [count,C,4,4] in 0..1, each around a colour of its own, by which routers tell them apart."""
    random = np.random.default_rng(seed)
    colours, texture = random.random((count, channels, 1, 1), np.float32), random.random(
        (count, channels, 4, 4), np.float32
    )
    return np.clip(colours + 0.3 * (texture - 0.5), 0, 1)


def enlarge(patterns, shape):
    _, height, width = shape
    return np.ascontiguousarray(patterns.repeat(-(-height // 4), 2).repeat(-(-width // 4), 3)[:, :, :height, :width])


def make_images(count, shape, seed):
    """[count,C,H,W]"""
    return enlarge(make_patterns(count, shape[0], seed), shape)


def ours(case):
    sys.path.insert(0, case["package"])
    import sparsight_infer as infer

    return infer.open(case["frozen"], threads=case["threads"], kept_experts=case.get("kept")).logits


def made_once(path, make):
    if not os.path.exists(path):
        make(path)
    return path


def quantized_dynamically(path, case):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        case["onnx"], path, op_types_to_quantize=["MatMul", "Gemm"], weight_type=QuantType.QInt8, per_channel=True
    )


def onnxruntime(case):
    import onnxruntime as ort

    if case["type"] == "bf16":
        raise SkippedError("its CPU provider has no bf16 layers")
    file = case["onnx"]
    if case["type"] == "int8":
        file = made_once(file + ".dynamic_int8", lambda path: quantized_dynamically(path, case))
    settings = ort.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = case["threads"], 3
    session = ort.InferenceSession(file, settings, providers=["CPUExecutionProvider"])
    return lambda pixels: session.run(["logits"], {"images": pixels})[0]


def quantized_with_scales(path, case):
    """The nodes QuantizeLinear and DequantizeLinear around each product, with scales from some images."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Images(CalibrationDataReader):
        def __init__(self):
            self.images = iter(make_images(CALIBRATION_IMAGES, case["shape"], seed=7))

        def get_next(self):
            image = next(self.images, None)
            return None if image is None else {"images": image[None]}

    quantize_static(
        case["onnx"],
        path,
        Images(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        op_types_to_quantize=["MatMul", "Gemm"],
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
    )


def openvino(case):
    import openvino as ov

    core, file = ov.Core(), case["onnx"]
    if case["type"] == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        raise SkippedError("it has no bf16 on this CPU")
    by_nncf = case["type"] == "int8" and importlib.util.find_spec("nncf")
    if case["type"] == "int8" and not by_nncf:
        file = made_once(file + ".qdq.onnx", lambda path: quantized_with_scales(path, case))
    model = core.read_model(file)
    if by_nncf:
        import nncf

        images = make_images(CALIBRATION_IMAGES, case["shape"], seed=7)[:, None]
        model = nncf.quantize(model, nncf.Dataset(list(images)), model_type=nncf.ModelType.TRANSFORMER)
    model.reshape({"images": [case["batch"], *case["shape"]]})
    request = core.compile_model(
        model,
        "CPU",
        {
            "INFERENCE_NUM_THREADS": case["threads"],
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "bf16" if case["type"] == "bf16" else "f32",
        },
    ).create_infer_request()
    logits = next(output for output in request.model_outputs if "logits" in output.get_names())
    return lambda pixels: request.infer([pixels])[logits]


def converter(name):
    """The program of that name: of the package of that name, of this interpreter or on the PATH."""
    package = importlib.util.find_spec(name)
    folders = [*(package.submodule_search_locations if package else []), os.path.dirname(sys.executable)]
    found = shutil.which(name, path=os.pathsep.join(folders)) or shutil.which(name)
    if not found:
        raise SkippedError(f"needs the converter {name}, which reads ONNX files")
    return found


def run_converter(*command, folder):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        last = (done.stdout.strip().splitlines() or [""])[-1]
        raise SkippedError(f"its converter {os.path.basename(command[0])} ends with {done.returncode}: {last[:120]}")


def need_static(case):
    if case["type"] != "fp32" or case["routing"] != "dense":
        raise SkippedError("measured dense and in fp32 only (its format has no rows of varying number)")


def litert(case):
    import ai_edge_litert.interpreter as interpreter

    need_static(case)
    stem = f"{case['onnx']}.{case['batch']}_images"  # onnx2tf needs all shapes, and onnxsim finds them out
    shape = "images:" + ",".join(str(size) for size in (case["batch"], *case["shape"]))
    simplify, convert, within = converter("onnxsim"), converter("onnx2tf"), dict(folder=case["folder"])
    static = made_once(
        stem + ".onnx",
        lambda path: run_converter(simplify, case["onnx"], path, "--overwrite-input-shape", shape, **within),
    )
    folder = made_once(
        stem + "_tflite",
        lambda path: run_converter(convert, "-i", static, "-o", path, "-kat", "images", "-rtpo", "Erf", **within),
    )
    files = [file for file in pathlib.Path(folder).glob("*.tflite") if "float32" in file.name]
    if not files:
        raise SkippedError("its converter writes no file of fp32")
    runner = interpreter.Interpreter(model_path=str(files[0]), num_threads=case["threads"])
    runner.allocate_tensors()
    (given,), (out,) = runner.get_input_details(), runner.get_output_details()

    def run(pixels):
        runner.set_tensor(given["index"], pixels)
        runner.invoke()
        return runner.get_tensor(out["index"])

    return run


def write_with_split_sizes(path, case):
    """The ONNX file with the sizes of each Split's parts, without which pnnx leaves the node out."""
    import onnx

    model = onnx.shape_inference.infer_shapes(onnx.load(case["onnx"]))
    known = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in model.graph.value_info
    }
    for node in model.graph.node:
        if node.op_type == "Split" and len(node.input) == 1:
            axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
            size = known[node.input[0]][axis] // len(node.output)
            sizes = onnx.numpy_helper.from_array(np.full(len(node.output), size, np.int64), node.output[0] + ".sizes")
            model.graph.initializer.append(sizes)
            node.input.append(sizes.name)
    onnx.save(model, path)


def ncnn(case):
    import ncnn as library

    need_static(case)
    if case["batch"] != 1:
        raise SkippedError("measured on one image (its layers take no batch)")
    stem = os.path.join(case["folder"], "split_sizes")
    shape = ",".join(str(size) for size in (1, *case["shape"]))
    program = converter("pnnx")
    file = made_once(stem + ".onnx", lambda path: write_with_split_sizes(path, case))
    made_once(
        stem + ".ncnn.param",
        lambda path: run_converter(program, file, f"inputshape=[{shape}]", "fp16=0", folder=case["folder"]),
    )
    net = library.Net()
    net.opt.num_threads = case["threads"]
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    if net.load_param(stem + ".ncnn.param") or net.load_model(stem + ".ncnn.bin"):
        raise SkippedError("its converter's files do not load")

    def run(pixels):
        extractor = net.create_extractor()
        extractor.input("in0", library.Mat(pixels[0]))
        return np.array(extractor.extract("out0")[1])[None]

    return run


RUNTIMES = {"ours": ours, "ONNX Runtime": onnxruntime, "OpenVINO": openvino, "LiteRT": litert, "ncnn": ncnn}
MODULES = {"ONNX Runtime": "onnxruntime", "OpenVINO": "openvino", "LiteRT": "ai_edge_litert", "ncnn": "ncnn"}


def checked(run, case):
    """The error that TOLERANCE bounds."""
    pixels, expected = (np.load(os.path.join(case["folder"], name)) for name in ("pixels.npy", "expected.npy"))
    batch = case["batch"]
    got = np.concatenate([run(pixels[i : i + batch]) for i in range(0, len(pixels) // batch * batch, batch)])
    expected = expected[: len(got)]
    error = float(np.median(np.abs(got - expected).max(1) / np.abs(expected).max(1)))
    if not error <= TOLERANCE[case["type"]]:
        raise SkippedError(f"its logits differ from ours by {error:.1e} of the largest")
    return error


def prepare(name, case):
    """(the function of pixels, the function that makes the next ones, the error)."""
    run = RUNTIMES[name](case)
    if case.get("images"):  # so many different ones, one after the other
        patterns = itertools.cycle(make_patterns(case["images"], case["shape"][0], seed=3))
        return run, lambda: enlarge(next(patterns)[None], case["shape"]), 0.0
    pixels = np.ascontiguousarray(np.load(os.path.join(case["folder"], "pixels.npy"))[: case["batch"]])
    return run, lambda: pixels, checked(run, case)


def memory():
    """Bytes of this process: at its peak, and now, where pages that processes share count in part."""
    peak = re.search(r"VmHWM:\s*(\d+) kB", pathlib.Path("/proc/self/status").read_text())
    now = re.search(r"Pss:\s*(\d+) kB", pathlib.Path("/proc/self/smaps_rollup").read_text())
    return {"peak_bytes": int(peak[1]) << 10, "pss_bytes": int(now[1]) << 10}


def libraries():
    """The sizes of the shared objects that this process has loaded, by path."""
    mapped = set(re.findall(r"(/\S+\.so[.\d]*)$", pathlib.Path("/proc/self/maps").read_text(), re.MULTILINE))
    return {path: os.path.getsize(path) for path in sorted(mapped) if os.path.exists(path)}


def described(error):
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:160]}"


def answer(name, asked, state):
    if "runs" in asked:
        seconds = 0
        for _ in range(asked["runs"]):
            pixels = state["next"]()
            start = time.perf_counter()
            state["run"](pixels)
            seconds += time.perf_counter() - start
        return {"seconds": seconds / asked["runs"]}
    if "memory" in asked:
        return memory()
    try:
        state["run"], state["next"], error = prepare(name, asked)
        return {"error": error}
    except SkippedError as reason:
        return {"skipped": str(reason)}
    except Exception as error:  # whatever a runtime does not support
        return {"skipped": described(error)}


def first_answer(name, case):
    pixels = np.array(np.load(os.path.join(case["folder"], "pixels.npy"), mmap_mode="r")[:1])
    if name != "none":
        RUNTIMES[name](case)(pixels)
    return dict(memory(), libraries=libraries())


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # runtimes print to stdout
    if "--once" in sys.argv:
        case = json.loads(pathlib.Path(sys.argv[3]).read_text())
        print(json.dumps(first_answer(sys.argv[1], case)), file=out, flush=True)
        return
    state = {}
    for line in sys.stdin:
        print(json.dumps(answer(sys.argv[1], json.loads(line), state)), file=out, flush=True)


if __name__ == "__main__":
    main()
