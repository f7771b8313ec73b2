#include "sparsight/models/conv_blocks.h"

#include "sparsight/core/error.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/moe/validate_router.h"

namespace sparsight {

ConvBlocks::ConvBlocks(const MoeSpec& moe, int64_t count, MapSize map)
    : moe_(moe), specs_(static_cast<size_t>(count), nullptr), map_(map) {
  if (moe_.shares_router()) specs_ = moe_.layers(count);
}

void ConvBlocks::add(torch::nn::Module& parent, const std::string& name, const std::string& path,
                     const ConvBlockRecipe& recipe) {
  const MoeSpec* const spec = specs_.at(blocks_.size());
  Block block;
  if (spec) {
    if (routed_.empty()) first_routed_ = blocks_.size(), router_width_ = recipe.in;
    block.experts = parent.register_module(name, std::make_shared<ExpertBlock>(recipe, *spec, path, map_));
    routed_.push_back(block.experts->path());
  } else {
    block.dense = parent.register_module(name, recipe.make(/*branch=*/false));
  }
  blocks_.push_back(std::move(block));
  paths_.push_back(path);
  map_ = recipe.output(map_);
}

void ConvBlocks::add_router(torch::nn::Module& model) {
  SPARSIGHT_CHECK(blocks_.size() == specs_.size());
  if (routed_.empty()) return;
  shared_.emplace(model, moe_, router_width_, routed_);
  if (router()->mixes_tokens())
    fail_usage("the router ", router()->registered_name(),
               " mixes tokens, but one for whole images of a convolutional network has to choose experts; choose "
               "per_image or softmax_topk");
}

at::Tensor ConvBlocks::run(at::Tensor x, const ModelInput& input, ModelOutput& out, const Tap& tap) {
  ModelInput decided = input;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (router() && i == first_routed_)
      decided = shared_->decide(x.mean({2, 3}).unsqueeze(1), TokenLayout{}, input, out);
    const Block& block = blocks_[i];
    x = block.dense ? block.dense->forward(x, input.mode.batch_statistics) : block.experts->forward(x, decided, out);
    tap(x, paths_[i]);
  }
  return x;
}

std::vector<PartCost> ConvBlocks::cost(MapSize& map, const CostOptions& options) const {
  std::vector<PartCost> parts;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (router() && i == first_routed_) {
      const TokenLayout image{.images = 1, .per_image = 1};
      const Cost mean = on_units(elementwise_cost(router_width_), map.positions());
      parts.push_back({router_name(), checked_cost(*router(), router_name(), image).cost + mean});
    }
    const Block& block = blocks_[i];
    append(parts,
           block.dense ? block.dense->cost(paths_[i], map) : block.experts->cost(paths_[i], map, options, *router()));
  }
  return parts;
}

engine::Value ConvBlocks::compile(engine::ProgramBuilder& builder, engine::Value x) const {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (router() && i == first_routed_) shared_->compile(builder, engine::add_mean(builder, x));
    const Block& block = blocks_[i];
    x = block.dense ? engine::add_convs(builder, x, block.dense->conv_steps(builder.type()))
                    : block.experts->compile(builder, x);
  }
  return x;
}

}  // namespace sparsight
