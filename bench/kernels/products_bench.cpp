// Products with packed weights of the layers of ViTs, at every level and in every type:
// ./dev bench loops --benchmark_filter=products/384 --benchmark_enable_random_interleaving=true
#include <benchmark/benchmark.h>

#include <array>

#include "sparsight/kernels/examples.h"
#include "sparsight/kernels/gemm/packed_linear.h"
#include "sparsight/kernels/gemm/row_blocks.h"
#include "sparsight/kernels/isa/isa.h"

namespace sparsight::cpu {
namespace {

struct Layer {
  const char* name;
  int64_t inputs, outputs;
};

// `rows` tokens that stay in the cache, as those of an image do while a thread computes a block.
void multiply(benchmark::State& state, const std::string& level, const Layer& layer, WeightType type, int64_t rows) {
  set_isa(level);
  examples::Arrays arrays;
  const PackedLinear linear(arrays.add(layer.inputs * layer.outputs), nullptr, layer.inputs, layer.outputs, type);
  Workspace panel;
  Gemm p = linear.gemm(0, layer.outputs);
  p.m = rows;
  p.a = arrays.add(blocks_floats(layer.inputs, rows)), p.a_block = rows * kBlockLd;
  p.c = arrays.add(rows * layer.outputs), p.c_ld = layer.outputs;
  float* const space = panel.floats(kernels().panel_floats);
  for (auto _ : state) kernels().product(p, space);
  set_isa("");
  state.counters["multiply-adds"] = benchmark::Counter(static_cast<double>(rows * layer.inputs * layer.outputs),
                                                       benchmark::Counter::kIsIterationInvariantRate);
}

const bool products_registered = [] {
  constexpr std::array<const char*, 3> kTypes{"fp32", "bf16", "int8"};
  for (const std::string& level : isa_names())
    for (const int64_t width : {384, 192, 64})
      for (const Layer& layer : {Layer{"qkv", width, 3 * width},
                                 {"proj", width, width},
                                 {"fc1", width, 4 * width},
                                 {"fc2", 4 * width, width}})
        for (const int64_t rows : {1, 197})
          for (size_t type = 0; type < kTypes.size(); ++type)
            benchmark::RegisterBenchmark(
                ("products/" + std::to_string(width) + "/" + layer.name + "/" + std::to_string(rows) + "/" +
                 kTypes[type] + "/" + level)
                    .c_str(),
                [=](benchmark::State& state) { multiply(state, level, layer, static_cast<WeightType>(type), rows); });
  return true;
}();

}  // namespace
}  // namespace sparsight::cpu
