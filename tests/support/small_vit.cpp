#include "tests/support/small_vit.h"

#include <cmath>
#include <random>
#include <string>

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

constexpr int64_t kChannels = 3, kPatch = 4, kHeads = 4, kHidden = 4 * kVitWidth, kBlocks = 6, kRouted = 2;

class VitMaker {
 public:
  VitMaker(uint64_t seed, WeightType type)
      : random_(seed),
        type_(type),
        builder_({kChannels, kVitSide, kVitSide, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}}, {type}) {}

  engine::Program make() {
    Value tokens = embed();
    for (int64_t block = 0; block < kBlocks; ++block) {
      const bool routed = block >= kBlocks - kRouted;
      tokens = builder_.add<engine::BlockStep>(tokens, builder_.new_value(tokens.shape), transformer_block(!routed));
      if (routed) tokens = experts("blocks." + std::to_string(block) + ".mlp", tokens);
    }
    const Value class_token = builder_.add<engine::PoolStep>(
        tokens, builder_.new_value(engine::Shape::vector(kVitWidth)), engine::PoolStep::Pool::first);
    const Value features = builder_.add<engine::NormStep>(class_token, builder_.new_value(class_token.shape), norm());
    engine::Program program = builder_.finish(features, add_linear(builder_, features, linear(kVitWidth, kVitClasses)));
    for (int64_t k = 0; k < kVitClasses; ++k) program.info.classes.push_back("class " + std::to_string(k));
    using Kind = engine::PreprocessStep::Kind;
    program.info.preprocessing =
        engine::Preprocessing{{{Kind::resize, 36, 0, true}, {Kind::center_crop, kVitSide, kVitSide, false}},
                              true,
                              kChannels,
                              kVitSide,
                              kVitSide};
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
    return {weight.data(), bias.data(), inputs, outputs, type_};
  }
  engine::Norm norm() { return {std::vector<float>(kVitWidth, 1.0F), numbers(kVitWidth, kVitWidth), 1e-6F}; }

  Value embed() {
    constexpr int64_t kGrid = kVitSide / kPatch;
    const Value planes = builder_.planes();
    const Value tokens = builder_.new_value({.prefix = 1, .height = kGrid, .width = kGrid, .columns = kVitWidth});
    return builder_.add<engine::EmbedStep>(
        planes, tokens, kChannels, engine::PatchEmbedding(linear(kChannels * kPatch * kPatch, kVitWidth), kPatch),
        numbers(kVitWidth, 1), numbers(kGrid * kGrid * kVitWidth, 1));
  }

  engine::TransformerBlock transformer_block(bool has_mlp) {
    engine::TransformerBlockWeights weights{
        norm(), linear(kVitWidth, 3 * kVitWidth), linear(kVitWidth, kVitWidth), kHeads, {}};
    if (has_mlp) weights.mlp = engine::Mlp{norm(), linear(kVitWidth, kHidden), linear(kHidden, kVitWidth)};
    return engine::TransformerBlock(std::move(weights));
  }

  Value experts(const std::string& layer, Value tokens) {
    const Value normed = builder_.add<engine::NormStep>(tokens, builder_.new_value(tokens.shape), norm());
    builder_.add_route(layer, normed,
                       std::make_unique<engine::TopKRouter>(
                           engine::RouterLogits(engine::LinearMap(numbers(kVitExperts * kVitWidth, kVitWidth),
                                                                  kVitWidth, kVitExperts, true)),
                           engine::TopKRule{.k = 2, .gates = engine::Gates::of_chosen}, engine::ImageVector{}),
                       {});
    const cpu::MlpShape shape{kVitExperts, kVitWidth, kHidden};
    const std::vector<float> w1 = numbers(kVitExperts * kVitWidth * kHidden, kVitWidth),
                             b1 = numbers(kVitExperts * kHidden, kVitWidth),
                             w2 = numbers(kVitExperts * kHidden * kVitWidth, kHidden),
                             b2 = numbers(kVitExperts * kVitWidth, kHidden);
    cpu::OwnThreads threads(1);
    auto mlps = std::make_unique<engine::MlpExperts>(
        cpu::PackedExperts(threads, shape, w1.data(), b1.data(), w2.data(), b2.data(), type_), Activation::gelu);
    return builder_.add<engine::ExpertsStep>(layer, builder_.find_routing(layer), normed, tokens,
                                             builder_.new_value(tokens.shape), std::move(mlps), tokens.shape.rows());
  }

  std::mt19937_64 random_;
  WeightType type_;
  ProgramBuilder builder_;
};

}  // namespace

engine::Program small_vit(uint64_t seed, WeightType type) { return VitMaker(seed, type).make(); }

}  // namespace sparsight::test
