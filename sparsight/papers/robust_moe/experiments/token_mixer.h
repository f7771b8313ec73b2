// The model of the generated task: images of 8 rows, which are its tokens, of 8 pixels. Embedding with a position, two
// blocks that mix the tokens linearly and then apply an MoE layer, norm, mean over tokens, head. With one expert it is
// a dense model of half the operations. Letters: moe/axes.md.
#pragma once

#include "sparsight/models/block_mlp.h"
#include "sparsight/models/image_model.h"
#include "sparsight/nn/linear.h"
#include "sparsight/nn/norm.h"

namespace sparsight::robust_moe {

inline constexpr int64_t kMixedTokens = 8, kMixerClasses = 10;

class MixerBlock : public torch::nn::Module {
 public:
  MixerBlock(const MoeSpec& moe, const std::string& path);
  at::Tensor forward(const at::Tensor& x, const ModelInput& input, ModelOutput& out);  // [B,S,D] -> [B,S,D]
  void initialize(const InitRandom& random);

 private:
  LayerNorm norm1_, norm2_;
  at::Tensor mixer_;  // [S,S]
  std::shared_ptr<MoeLayer> moe_;
};

class TokenMixer : public ImageModel {
 public:
  explicit TokenMixer(const MoeSpec& moe);
  at::Tensor classify(const at::Tensor& features) override;
  void initialize_all(uint64_t seed);

 protected:
  ModelOutput run(const ModelInput& input) override;

 private:
  Linear embed_;
  at::Tensor position_;  // [S,D]
  std::vector<std::shared_ptr<MixerBlock>> blocks_;
  LayerNorm norm_;
  Linear head_;
};

// Experts 24 -> 32 -> 24 with GELU, without biases and capacity limit; min(2, experts) of them see each token, gated by
// the softmax over all; importance loss 0.005, router noise 1 / E.
std::shared_ptr<TokenMixer> make_token_mixer(int64_t experts, uint64_t seed);

}  // namespace sparsight::robust_moe
