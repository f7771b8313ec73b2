"""torch.onnx.export, in both of its forms: ONNX Runtime computes what the layer computes, for any number of images."""
import os
import sys
import tempfile
import unittest
import warnings

import support  # noqa: F401  (finds the built package)
import torch

try:
    import onnx
    import onnxruntime
    import onnxscript  # noqa: F401  (the exporter needs it)
except ImportError as missing:
    print(f"needs onnx, onnxruntime and onnxscript (pip install onnx onnxruntime onnxscript): {missing}")
    sys.exit(77)

import sparsight
from sparsight import _onnx_routers

B, S, D, F, E = 2, 6, 8, 12, 4
SETTINGS = {"gshard_top2": {"eval_second": "threshold", "threshold": 0.45}, "cosine": {"width": 5, "k": 2},
            "sigmoid_bias": {"k": 2, "groups": 2, "kept_groups": 1}, "softmax_topk": {"k": 2, "renormalize": True},
            "noisy_topk": {"eval_k": 3}, "per_image": {"norm": "affine"}, "soft_moe": {"slots": 2}}
# The newer form of the exporter takes ten seconds a layer: those whose routings have different parts.
BOTH_FORMS = ("softmax_topk", "per_image", "soft_moe")


def export(module, x, dynamo, file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns of its older form, and of its own calls
        if dynamo:
            torch.onnx.export(module, (x,), file, dynamo=True, verbose=False, dynamic_shapes={"x": {0: torch.export.Dim("images")}})
        else:
            torch.onnx.export(module, (x,), file, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "images"}}, opset_version=18)


def session(file):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


class Onnx(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def same(self, name, module, counts=(1, 2, 5), forms=(True, False)):
        module.eval()
        for parameter in module.parameters():
            if parameter.dim() > 0:
                torch.nn.init.normal_(parameter, std=0.3)
        for dynamo in forms:
            with tempfile.TemporaryDirectory() as folder:
                file = os.path.join(folder, "layer.onnx")
                export(module, torch.randn(B, S, D), dynamo, file)
                domains = {node.domain for node in onnx.load(file).graph.node}
                self.assertNotIn("sparsight", domains)
                run = session(file)
                for count in counts:
                    x = torch.randn(count, S, D)
                    with self.subTest(name, dynamo=dynamo, images=count), torch.no_grad():
                        got = run.run(None, {run.get_inputs()[0].name: x.numpy()})[0]
                        torch.testing.assert_close(torch.from_numpy(got), module(x), rtol=1e-4, atol=1e-5)

    def test_every_router_that_has_a_form(self):
        for name in sorted([*_onnx_routers._ROUTERS, "soft_moe"]):
            forms = (True, False) if name in BOTH_FORMS else (False,)
            self.same(name, sparsight.MoEMLP(D, F, E, router=name, **SETTINGS.get(name, {})), forms=forms)

    def test_class_token_of_per_image(self):
        self.same("per_image", sparsight.MoEMLP(D, F, E, router="per_image", prefix=1), forms=(False,))

    def test_activations_and_no_bias(self):
        for activation in ("gelu", "relu", "silu", "gelu_tanh"):
            self.same(activation, sparsight.MoEMLP(D, F, E, activation=activation, bias=False), counts=(2,),
                      forms=(False,))

    def test_dense_layers(self):
        class Block(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.qkv, self.mlp = torch.nn.Linear(D, 3 * D), sparsight.MLP(D, F)

            def forward(self, x):
                return self.mlp(sparsight.self_attention(self.qkv(x), 2))

        self.same("block", Block())

    def test_experts_without_tokens(self):
        layer = sparsight.MoEMLP(D, F, 16, k=1)
        self.same("one token", layer, counts=(1,), forms=(False,))

    def test_packed_layers_export_their_weights(self):
        layer = sparsight.MoEMLP(D, F, E).eval()
        layer.pack("fp32")
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            file, x = os.path.join(folder, "layer.onnx"), torch.randn(B, S, D)
            export(layer, x, False, file)
            run = session(file)
            got = torch.from_numpy(run.run(None, {"x": x.numpy()})[0])
            torch.testing.assert_close(got, layer(x), rtol=1e-4, atol=1e-5)

    def test_what_has_no_form_says_so(self):
        x = torch.randn(B, S, D)
        for layer, message in ((sparsight.MoEMLP(D, F, E, router="expert_choice").eval(), "expert_choice has no form in ONNX"),
                               (sparsight.MoEMLP(D, F, E, capacity=1.0).eval(), "eval_factor"),
                               (sparsight.MoEMLP(D, F, E, router="noisy_topk", eval_noise=True).eval(), "eval_noise"),
                               (sparsight.MoEMLP(D, F, E), "model.eval")):
            with self.subTest(message), tempfile.TemporaryDirectory() as folder:
                with self.assertRaisesRegex(NotImplementedError, message):
                    # The exporter itself puts the module into evaluation by default.
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        torch.onnx.export(layer, (x,), os.path.join(folder, "x.onnx"), dynamo=False,
                                          training=torch.onnx.TrainingMode.PRESERVE)
        limited = sparsight.MoEMLP(D, F, E, capacity={"factor": 1.0, "eval_factor": 0})
        self.same("capacity in training alone", limited, counts=(2,), forms=(False,))


if __name__ == "__main__":
    unittest.main()
