"""ONNX Runtime and the programs agree: logits, the experts chosen and their gates, for one image and for five, in every
form that the C++ tests write (OnnxForms and EveryProgram): all kinds of steps, routers and experts, and of models."""
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as missing:
    print(f"needs numpy, onnx and onnxruntime (pip install numpy onnx onnxruntime): {missing}")
    sys.exit(77)

BUILD = pathlib.Path(os.environ.get("BUILD", "build/release"))
WRITERS = {"sparsight_torch_free_tests": "OnnxForms.*", "sparsight_tests": "*EveryProgram.IsAnOnnxFileToo*"}
# The programs run on instructions without bf16, with which they multiply in fp32 as files do; the answers in int8 are those
# of the fp32 numbers that the weights stand for.
LEVEL = "baseline"
TOLERANCE = 1e-5  # the largest difference, relative to the largest number


def choices(experts, gates):
    """Of each token, (expert, gate) in the order of the columns."""
    k = experts.shape[-1]
    rows = zip(experts.reshape(-1, k), gates.reshape(-1, k))
    return [[(int(e), float(g)) for e, g in zip(*row) if e >= 0] for row in rows]


def expected_choices(routing):
    rows = [[] for _ in range(routing["tokens"])]
    for token, expert, gate in zip(routing["token"], routing["expert"], routing["gate"]):
        rows[token].append((expert, gate))
    return rows if routing["ranked"] else [sorted(row) for row in rows]


class OnnxFiles(unittest.TestCase):
    def setUp(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        # By default ONNX Runtime rounds what matrices of int8 are multiplied with to 8 bits.
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
        self.session = lambda file: onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def near(self, got, expected, what):
        expected = np.asarray(expected, np.float32).reshape(got.shape)
        scale = max(1.0, np.abs(expected).max(initial=0))
        self.assertLessEqual(np.abs(got - expected).max(initial=0) / scale, TOLERANCE, what)

    def compare_routing(self, outputs, routing):
        name = "routing." + routing["layer"]
        if "dispatch" in routing:
            for part in ("dispatch", "combine"):
                self.near(outputs[f"{name}.{part}"], routing[part], part)
            return
        got, expected = choices(outputs[name + ".experts"], outputs[name + ".gates"]), expected_choices(routing)
        for one, other in zip(got, expected, strict=True):
            self.assertEqual([e for e, _ in one], [e for e, _ in other], name)
            self.near(np.array([g for _, g in one], np.float32), [g for _, g in other], name)
        empty = outputs[name + ".experts"] < 0
        self.assertTrue((outputs[name + ".gates"][empty] == 0).all(), "a gate without an expert")

    def compare_file(self, file):
        """Returns the number of answers."""
        with open(file.removesuffix(".onnx").removesuffix(".masked") + ".json") as text:
            form = json.load(text)
        onnx.checker.check_model(file, full_check=True)
        session = self.session(file)
        names = [output.name for output in session.get_outputs()]
        for answer in form["answers"]:
            shape = session.get_inputs()[0].shape[1:]
            pixels = np.array(answer["pixels"], np.float32).reshape(answer["images"], *shape)
            outputs = dict(zip(names, session.run(names, {"images": pixels})))
            self.assertEqual(outputs["logits"].shape, (answer["images"], form["classes"]))
            for routing in answer["routings"]:
                self.compare_routing(outputs, routing)
            self.near(outputs["logits"], answer["logits"], "logits")
        return len(form["answers"])

    def test_files_answer_as_their_programs_do(self):
        for writer, tests in WRITERS.items():
            program = BUILD / "tests" / writer
            if not program.exists():
                continue  # a tree without torch
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run([program, f"--gtest_filter={tests}"], check=True, stdout=subprocess.DEVNULL,
                               env=dict(os.environ, SPARSIGHT_ONNX_FORMS=folder, SPARSIGHT_ISA=LEVEL))
                files = sorted(glob.glob(f"{folder}/*.onnx"))
                self.assertGreater(len(files), 50)
                answers = 0
                for file in files:
                    with self.subTest(os.path.basename(file)):
                        answers += self.compare_file(file)
                print(f"{writer}: {len(files)} files, {answers} answers")


if __name__ == "__main__":
    unittest.main()
