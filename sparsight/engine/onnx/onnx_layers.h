// Layers as ONNX nodes: packed matrices as constants, products, norms, activations.
#pragma once

#include "sparsight/engine/onnx/onnx_graph.h"
#include "sparsight/kernels/gemm/packed_linear.h"

namespace sparsight::engine {

struct Norm;

// Matrices of bf16 become the fp32 numbers that they hold; int8 stays, with DequantizeLinear after it.
std::vector<float> as_floats(const cpu::MatrixView& matrix);
// The numbers in their order, as a tensor of these dimensions, of which `axis` is that of the outputs.
OnnxName onnx_weight(OnnxGraph& graph, const std::string& name, const cpu::MatrixView& matrix,
                     const std::vector<int64_t>& dims, int64_t axis);
// x [...,I] -> [...,O], with the bias.
OnnxName onnx_linear(OnnxGraph& graph, const std::string& name, const OnnxName& x, const cpu::PackedLinear& linear);

OnnxName onnx_activation(OnnxGraph& graph, Activation activation, const OnnxName& x);
// Square patches of images [N,channels,down side,across side] as rows [N,down across,channels side side].
OnnxName onnx_patches(OnnxGraph& graph, const OnnxName& images, int64_t channels, int64_t down, int64_t across,
                      int64_t side);
// The layer norm of the last axis.
OnnxName onnx_norm(OnnxGraph& graph, const std::vector<float>& weight, const std::vector<float>& bias, float epsilon,
                   const OnnxName& x);
OnnxName onnx_norm(OnnxGraph& graph, const Norm& norm, const OnnxName& x);

}  // namespace sparsight::engine
