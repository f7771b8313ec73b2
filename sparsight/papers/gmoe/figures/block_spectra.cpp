#include "sparsight/papers/gmoe/figures/block_spectra.h"

#include <algorithm>
#include <cmath>

#include "sparsight/analysis/spectrum.h"
#include "sparsight/core/error.h"
#include "sparsight/nn/attention.h"
#include "sparsight/nn/conv.h"

namespace sparsight::gmoe {
namespace {

template <class Module>
std::shared_ptr<Module> module_named(ImageModel& model, const std::string& name) {
  const auto modules = model.named_modules();
  const auto* found = modules.find(name);
  const auto module = found ? std::dynamic_pointer_cast<Module>(*found) : nullptr;
  if (!module) fail("the model has no ", name, " of the expected kind; spectra are of ViTs and CNNs");
  return module;
}

// [B,S,D] -> [B,D,side,side]: the patch tokens, without those before them.
at::Tensor as_maps(const at::Tensor& tokens, int64_t patches) {
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(patches))));
  if (side * side != patches) fail("spectra are of square maps, got ", patches, " patches");
  return tokens.slice(1, tokens.size(1) - patches).transpose(1, 2).reshape({tokens.size(0), -1, side, side});
}

double high_of_tokens(const at::Tensor& tokens, int64_t patches) {
  return high_frequency_amplitude(as_maps(tokens, patches));
}

// The tokens that the first block takes: patches and class token with their positions.
at::Tensor embedded(ImageModel& model, const at::Tensor& patches) {
  const auto parameters = model.named_parameters();
  for (const char* part : {"reg_token", "norm_pre.weight", "blocks.0.ls1.gamma"})
    if (parameters.contains(part))
      fail("spectra are of vision transformers without registers, layer scale and pre_norm; this one has ", part);
  at::Tensor tokens = patches;
  if (const at::Tensor* token = parameters.find("cls_token"))
    tokens = at::cat({token->expand({patches.size(0), -1, -1}), tokens}, 1);
  return tokens + parameters["pos_embed"];
}

std::vector<BlockSpectrum> of_transformer(ImageModel& model, ModelInput input) {
  input.taps = {"patch_embed"};
  int64_t depth = 0;
  for (const std::string& name : model.tap_names())
    if (name == cat("blocks.", depth)) input.taps.push_back(name), ++depth;
  const std::map<std::string, at::Tensor> taps = model.forward(input).taps;
  const int64_t patches = taps.at("patch_embed").size(1);
  std::vector<BlockSpectrum> all;
  at::Tensor x = embedded(model, taps.at("patch_embed"));
  for (int64_t i = 0; i < depth; ++i) {
    const std::string path = cat("blocks.", i);
    LayerNorm norm1(module_named<LayerNormImpl>(model, path + ".norm1")),
        norm2(module_named<LayerNormImpl>(model, path + ".norm2"));
    const at::Tensor normed = norm1->forward(x),
                     attended = module_named<AttentionImpl>(model, path + ".attn")->forward(normed),
                     middle = x + attended, out = taps.at(path);
    const auto high = [&](const at::Tensor& tokens) { return high_of_tokens(tokens, patches); };
    all.push_back({kAttention, i, high(x), high(middle), high(normed), high(attended)});
    all.push_back({kMlp, i, high(middle), high(out), high(norm2->forward(middle)), high(out - middle)});
    x = out;
  }
  return all;
}

std::vector<BlockSpectrum> of_cnn(ImageModel& model, ModelInput input) {
  for (const std::string& name : model.tap_names())
    if (name == "stem_norm" || name.starts_with("blocks.")) input.taps.push_back(name);
  const std::map<std::string, at::Tensor> taps = model.forward(input).taps;
  std::vector<BlockSpectrum> all;
  at::Tensor x = at::relu(taps.at("stem_norm"));
  for (int64_t i = 0; i + 1 < std::ssize(taps); ++i) {
    const std::string path = cat("blocks.", i);
    const at::Tensor out = taps.at(path);
    if (out.sizes() == x.sizes())
      all.push_back({kConvolution, i, high_frequency_amplitude(x), high_frequency_amplitude(out),
                     high_frequency_amplitude(x),
                     high_frequency_amplitude(module_named<ConvImpl>(model, path + ".conv1")->forward(x))});
    x = out;
  }
  return all;
}

}  // namespace

std::vector<BlockSpectrum> block_spectra(ImageModel& model, const at::Tensor& images) {
  const torch::NoGradGuard no_grad;
  const std::vector<std::string> names = model.tap_names();
  const auto has = [&](const char* name) { return std::ranges::find(names, name) != names.end(); };
  if (has("patch_embed")) return of_transformer(model, {.images = images});
  if (has("stem_norm")) return of_cnn(model, {.images = images});
  fail("spectra are of the models vit and cnn; this one has neither patches nor a stem");
}

}  // namespace sparsight::gmoe
