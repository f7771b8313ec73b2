#include "sparsight/papers/robust_moe/experiments/token_mixer.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/catalogue/model_sections.h"
#include "sparsight/core/config.h"

namespace sparsight::robust_moe {
namespace {

constexpr int64_t kMixerWidth = 24, kMixerHidden = 32, kMixerDepth = 2;

double of_fan_in(int64_t inputs) { return 1 / std::sqrt(static_cast<double>(inputs)); }

}  // namespace

MixerBlock::MixerBlock(const MoeSpec& moe, const std::string& path)
    : norm1_(register_module("norm1", LayerNorm(kMixerWidth))),
      norm2_(register_module("norm2", LayerNorm(kMixerWidth))),
      mixer_(register_parameter("mixer", torch::zeros({kMixedTokens, kMixedTokens}))),
      moe_(register_module(
          "mlp", std::make_shared<MoeLayer>(
                     moe, LayerContext{.path = path + ".mlp", .width = kMixerWidth, .mlp_hidden = kMixerHidden}))) {}

void MixerBlock::initialize(const InitRandom& random) {
  init_normal(mixer_, of_fan_in(kMixedTokens), random.stream("mixer"));
}

at::Tensor MixerBlock::forward(const at::Tensor& x, const ModelInput& input, ModelOutput& out) {
  const at::Tensor mixed = x + mixer_.matmul(norm1_->forward(x));
  const TokenLayout layout{.images = x.size(0), .per_image = kMixedTokens};
  const at::Tensor tokens = norm2_->forward(mixed).reshape({-1, kMixerWidth});
  return mixed + run_moe(*moe_, tokens, layout, input, out).tokens.view_as(mixed);
}

TokenMixer::TokenMixer(const MoeSpec& moe)
    : ImageModel({1, kMixedTokens, kMixedTokens, kMixerClasses}),
      embed_(register_module("embed", Linear(kMixedTokens, kMixerWidth))),
      position_(register_parameter("pos_embed", torch::zeros({kMixedTokens, kMixerWidth}))),
      norm_(register_module("norm", LayerNorm(kMixerWidth))),
      head_(register_module("head", Linear(kMixerWidth, kMixerClasses))) {
  for (int64_t i = 0; i < kMixerDepth; ++i) {
    const std::string path = cat("blocks.", i), name = cat("block", i);
    blocks_.push_back(register_module(name, std::make_shared<MixerBlock>(moe, path)));
  }
}

void TokenMixer::initialize_all(uint64_t seed) {
  initialize(*this, seed);
  init_normal(embed_->weight, of_fan_in(kMixedTokens), InitRandom{seed, "embed"}.stream("weight"));
  init_normal(position_, kVitStd, InitRandom{seed, ""}.stream("pos_embed"));
  for (size_t i = 0; i < blocks_.size(); ++i) blocks_[i]->initialize({seed, cat("blocks.", i)});
}

at::Tensor TokenMixer::classify(const at::Tensor& features) { return as_logits(head_->forward(features)); }

ModelOutput TokenMixer::run(const ModelInput& input) {
  ModelOutput out;
  at::Tensor x = embed_->forward(6 * (input.images.squeeze(1) - 0.5)) + position_;
  for (const auto& block : blocks_) x = block->forward(x, input, out);
  out.features = norm_->forward(x).mean(1);
  return out;
}

std::shared_ptr<TokenMixer> make_token_mixer(int64_t experts, uint64_t seed) {
  const Json settings = {{"moe", {{"blocks", {0, 1}}, {"experts", experts}}},
                         {"experts", {{"bias", false}, {"init", "fan_in"}}},
                         {"router", {{"name", "softmax_topk"}, {"k", std::min<int64_t>(2, experts)}}},
                         {"losses", {{"vmoe_importance", 0.005}, {"vmoe_load", 0}}}};
  const Config config = Config::from_tables(settings, "the generated task");
  const auto model = std::make_shared<TokenMixer>(read_moe_spec(resolve(config, model_sections())));
  model->initialize_all(seed);
  return model;
}

}  // namespace sparsight::robust_moe
