// ONNX files (engine/onnx/): their bytes, and files of every kind of step, router and experts, which
// tests/engine/onnx_runtime_test.py compares with the programs.
#include "sparsight/engine/onnx/onnx_export.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "sparsight/engine/file/kinds.h"
#include "sparsight/engine/onnx/proto_message.h"
#include "sparsight/engine/program_builder.h"
#include "sparsight/engine/routers/expert_picks.h"
#include "sparsight/engine/routers/top_k.h"
#include "sparsight/engine/steps/experts.h"
#include "sparsight/engine/steps/rows.h"
#include "tests/engine/program_forms.h"
#include "tests/support/errors.h"
#include "tests/support/onnx_form.h"

namespace sparsight::engine {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text.push_back(static_cast<char>(value));
  return text;
}

// One token of two numbers, on which the router decides.
Program decided_by(std::unique_ptr<Router> router) {
  ProgramBuilder builder({.channels = 1, .height = 1, .width = 2, .mean = {}, .std = {}}, {});
  const Value token = builder.planes();
  builder.add_route("mlp", token, std::move(router), {});
  return builder.finish(token, token);
}

}  // namespace

// 150 and "testing" are the examples of protobuf.dev/programming-guides/encoding; 1.0F is 0x3f800000; -1 is 64 ones.
TEST(ProtoMessage, HasTheWireFormatOfProtocolBuffers) {
  ProtoMessage message, outer;
  message.number(1, 150);
  EXPECT_EQ(message.bytes(), bytes({0x08, 0x96, 0x01}));
  outer.message(3, message);
  EXPECT_EQ(outer.bytes(), bytes({0x1a, 0x03, 0x08, 0x96, 0x01}));
  ProtoMessage text, real, minus, high;
  text.text(2, "testing");
  EXPECT_EQ(text.bytes(), "\x12\x07testing");
  real.real(2, 1.0F);
  EXPECT_EQ(real.bytes(), bytes({0x15, 0, 0, 0x80, 0x3f}));
  minus.number(1, -1);
  EXPECT_EQ(minus.bytes(), bytes({0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}));
  high.number(20, 1);  // the number of the field takes two bytes: 20 << 3 = 160 = 1 * 128 + 32
  EXPECT_EQ(high.bytes(), bytes({0xa0, 0x01, 0x01}));
}

// What no output needs is not in the file, and equal small constants are there once.
TEST(OnnxGraph, WritesWhatItsOutputsNeed) {
  OnnxGraph graph;
  const OnnxName x = graph.add_input("x", {OnnxGraph::kImages, 2});
  const OnnxName one = graph.number(1), again = graph.number(1), unused = graph.number(3);
  EXPECT_EQ(one, again);
  graph.node("Neg", {unused});
  graph.add_output("y", graph.add(x, one), OnnxType::fp32, {OnnxGraph::kImages, 2});
  std::string file;
  graph.write([&](const void* data, size_t size) { file.append(static_cast<const char*>(data), size); });
  EXPECT_NE(file.find("Add"), std::string::npos);
  EXPECT_EQ(file.find("Neg"), std::string::npos);
  EXPECT_NE(file.find(bytes({0x4a, 0x04, 0, 0, 0x80, 0x3f})), std::string::npos);  // raw_data: 1.0F
  EXPECT_EQ(file.find(bytes({0x4a, 0x04, 0, 0, 0x40, 0x40})), std::string::npos);  // 3.0F
}

TEST(Onnx, RefusesLayersOfOneName) {
  ProgramBuilder builder({.channels = 1, .height = 1, .width = 2, .mean = {}, .std = {}}, {});
  const Value token = builder.planes();
  for (int i = 0; i < 2; ++i)
    builder.add_route("mlp", token,
                      std::make_unique<TopKRouter>(RouterLogits(LinearMap({1, 0, 0, 1}, 2, 2, true)), TopKRule{}), {});
  const Program program = builder.finish(token, token);
  EXPECT_EQ(testing::error_text([&] { test::onnx_bytes(program); }),
            "the model has two outputs named routing.mlp.experts, but an ONNX file needs a name for each; rename a "
            "layer");
}

TEST(Onnx, RefusesWhatTheTokensLack) {
  const auto refused = [](std::unique_ptr<Router> router) {
    const Program program = decided_by(std::move(router));
    return testing::error_text([&] { test::onnx_bytes(program); });
  };
  ImageVector vector;
  vector.source = ImageVector::Source::class_token;
  EXPECT_EQ(refused(std::make_unique<TopKRouter>(RouterLogits(LinearMap({1, 0, 0, 1}, 2, 2, true)), TopKRule{},
                                                 std::move(vector))),
            "[router] input = \"class_token\", but the model has no class token; set router.input = \"mean_all\"");
  EXPECT_EQ(refused(std::make_unique<PatchChoiceRouter>(RouterLogits(LinearMap({1, 0, 0, 1}, 2, 2, true)), 2,
                                                        PatchChoiceRouter::PatchGates::ones)),
            "[router] each expert takes 2 patches but an image has 1 patches; lower patches (in evaluation "
            "eval_patches) or use smaller patches");
}

// In the folder SPARSIGHT_ONNX_FORMS, if there is one; in any case a kind without a form is an error here.
TEST(OnnxForms, HaveEveryKindOfStepRouterAndExperts) {
  const std::string folder = test::onnx_folder();
  std::mt19937_64 engine(5);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> pixels(static_cast<size_t>(5 * engine_test::kFormPixels));
  for (float& pixel : pixels) pixel = uniform(engine);
  std::set<std::string_view> steps, routers, experts;
  for (const engine_test::ProgramForm& form : engine_test::program_forms())
    for (const auto& [name, type] : {std::pair{"fp32", WeightType::fp32}, std::pair{"bf16", WeightType::bf16},
                                     std::pair{"int8", WeightType::int8}}) {
      const Program program = form.make(type);
      for (const auto& step : program.steps()) {
        steps.insert(step->kind());
        if (const auto* layer = dynamic_cast<const ExpertsStep*>(step.get())) experts.insert(layer->experts().kind());
      }
      for (const RouteStep* route : program.routes()) routers.insert(route->router().kind());
      if (folder.empty())
        EXPECT_GT(test::onnx_bytes(program).size(), 1000U);
      else
        test::write_onnx_form(folder, form.name + "." + name, program, pixels, name);
    }
  for (const auto& kind : step_kinds()) EXPECT_TRUE(steps.contains(kind.name)) << kind.name;
  for (const auto& kind : router_kinds()) EXPECT_TRUE(routers.contains(kind.name)) << kind.name;
  for (const auto& kind : expert_kinds()) EXPECT_TRUE(experts.contains(kind.name)) << kind.name;
}

}  // namespace sparsight::engine
