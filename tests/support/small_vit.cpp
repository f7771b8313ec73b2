#include "tests/support/small_vit.h"

#include <cmath>
#include <random>
#include <string>

#include "sparsight/core/error.h"
#include "sparsight/engine/program_builder.h"
#include "sparsight/engine/routers/top_k.h"
#include "sparsight/engine/steps/blocks.h"
#include "sparsight/engine/steps/experts.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/kernels/threads/own_threads.h"

namespace sparsight::test {
namespace {

using engine::ProgramBuilder;
using engine::Value;

constexpr int64_t kChannels = 3;
constexpr const char* kRouter = "router";

void check_shape(const VitShape& shape) {
  const auto check = [](bool right, const char* what) {
    if (!right) fail_usage("no vision transformer has such a shape: ", what);
  };
  check(shape.patch > 0 && shape.side > 0 && shape.side % shape.patch == 0, "the patch must divide the side");
  check(shape.heads > 0 && shape.width > 0 && shape.width % shape.heads == 0, "the heads must divide the width");
  check(shape.classes > 0 && shape.depth > 0, "classes and depth must be positive");
  check(shape.routed >= 0 && shape.routed <= shape.depth, "routed blocks must be 0 to depth");
  check(shape.k > 0 && shape.k <= shape.experts, "k must be 1 to experts");
}

class VitMaker {
 public:
  explicit VitMaker(const VitShape& shape)
      : shape_(shape),
        random_(shape.seed),
        builder_({kChannels, shape.side, shape.side, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}}, {shape.type}) {}

  engine::Program make() {
    Value tokens = embed();
    for (int64_t block = 0; block < shape_.depth; ++block) tokens = add_block(block, tokens);
    const Value class_token = builder_.add<engine::PoolStep>(
        tokens, builder_.new_value(engine::Shape::vector(shape_.width)), engine::PoolStep::Pool::first);
    const Value features = builder_.add<engine::NormStep>(class_token, builder_.new_value(class_token.shape), norm());
    engine::Program program =
        builder_.finish(features, add_linear(builder_, features, linear(shape_.width, shape_.classes)));
    for (int64_t k = 0; k < shape_.classes; ++k) program.info.classes.push_back("class " + std::to_string(k));
    using Kind = engine::PreprocessStep::Kind;
    program.info.preprocessing = engine::Preprocessing{
        {{Kind::resize, shape_.side * 9 / 8, 0, true}, {Kind::center_crop, shape_.side, shape_.side, false}},
        true,
        kChannels,
        shape_.side,
        shape_.side};
    return program;
  }

 private:
  // Normal, with a standard deviation of 1 / sqrt(inputs).
  std::vector<float> numbers(int64_t count, int64_t inputs) {
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(inputs)));
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(random_);
    return values;
  }
  cpu::PackedLinear linear(int64_t inputs, int64_t outputs) {
    const std::vector<float> weight = numbers(inputs * outputs, inputs), bias = numbers(outputs, inputs);
    return {weight.data(), bias.data(), inputs, outputs, shape_.type};
  }
  engine::Norm norm() {
    return {std::vector<float>(static_cast<size_t>(shape_.width), 1.0F), numbers(shape_.width, shape_.width), 1e-6F};
  }

  Value embed() {
    const int64_t grid = shape_.side / shape_.patch, width = shape_.width;
    const Value planes = builder_.planes();
    const Value tokens = builder_.new_value({.prefix = 1, .height = grid, .width = grid, .columns = width});
    return builder_.add<engine::EmbedStep>(
        planes, tokens, kChannels,
        engine::PatchEmbedding(linear(kChannels * shape_.patch * shape_.patch, width), shape_.patch), numbers(width, 1),
        numbers(grid * grid * width, 1));
  }

  // As vit.cpp compiles blocks: of the last one only the class token is computed, where no router sees the others.
  Value add_block(int64_t block, Value tokens) {
    const int64_t first_routed = shape_.depth - shape_.routed;
    const bool routed = block >= first_routed, last = block + 1 == shape_.depth;
    if (routed && block == first_routed && shape_.shared_router) share_router(tokens);
    engine::Shape computed = tokens.shape;
    if (last && !routed) computed = {.height = 1, .columns = shape_.width};
    tokens = builder_.add<engine::BlockStep>(tokens, builder_.new_value(computed), transformer_block(!routed));
    return routed ? experts(block, tokens, last ? 1 : tokens.shape.rows()) : tokens;
  }

  engine::TransformerBlock transformer_block(bool has_mlp) {
    const int64_t width = shape_.width;
    engine::TransformerBlockWeights weights{norm(), linear(width, 3 * width), linear(width, width), shape_.heads, {}};
    if (has_mlp) weights.mlp = engine::Mlp{norm(), linear(width, 4 * width), linear(4 * width, width)};
    return engine::TransformerBlock(std::move(weights));
  }

  // Choices for each token, or for a whole image by its class token.
  int64_t add_route(const std::string& layer, Value tokens) {
    engine::RouterLogits logits(
        engine::LinearMap(numbers(shape_.experts * shape_.width, shape_.width), shape_.width, shape_.experts, true));
    const auto gates = shape_.k == 1 ? engine::Gates::probability : engine::Gates::of_chosen;
    const engine::TopKRule rule{.k = shape_.k, .gates = gates};
    auto router = shape_.per_token
                      ? std::make_unique<engine::TopKRouter>(std::move(logits), rule)
                      : std::make_unique<engine::TopKRouter>(std::move(logits), rule, engine::ImageVector{});
    return builder_.add_route(layer, tokens, std::move(router), {});
  }

  void share_router(Value tokens) {
    std::vector<std::string> layers;
    for (int64_t block = shape_.depth - shape_.routed; block < shape_.depth; ++block) layers.push_back(layer(block));
    builder_.share_routing(add_route(kRouter, tokens), layers);
  }

  static std::string layer(int64_t block) { return "blocks." + std::to_string(block) + ".mlp"; }

  Value experts(int64_t block, Value tokens, int64_t tokens_read) {
    const Value normed = builder_.add<engine::NormStep>(tokens, builder_.new_value(tokens.shape), norm());
    const int64_t routing =
        shape_.shared_router ? builder_.find_routing(layer(block)) : add_route(layer(block), normed);
    const cpu::MlpShape mlp{shape_.experts, shape_.width, 4 * shape_.width};
    const std::vector<float> w1 = numbers(mlp.experts * mlp.width * mlp.hidden, mlp.width),
                             b1 = numbers(mlp.experts * mlp.hidden, mlp.width),
                             w2 = numbers(mlp.experts * mlp.hidden * mlp.width, mlp.hidden),
                             b2 = numbers(mlp.experts * mlp.width, mlp.hidden);
    cpu::OwnThreads threads(1);
    auto mlps = std::make_unique<engine::MlpExperts>(
        cpu::PackedExperts(threads, mlp, w1.data(), b1.data(), w2.data(), b2.data(), shape_.type), Activation::gelu);
    return builder_.add<engine::ExpertsStep>(layer(block), routing, normed, tokens, builder_.new_value(tokens.shape),
                                             std::move(mlps), tokens_read);
  }

  const VitShape shape_;
  std::mt19937_64 random_;
  ProgramBuilder builder_;
};

}  // namespace

engine::Program make_vit(const VitShape& shape) {
  check_shape(shape);
  return VitMaker(shape).make();
}

}  // namespace sparsight::test
