#include "sparsight/models/wide_resnet.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/engine/steps/rows.h"
#include "sparsight/models/block_mlp.h"
#include "sparsight/nn/conv_parts.h"
#include "sparsight/nn/patches.h"

namespace sparsight {
namespace {

constexpr int64_t kStemChannels = 16, kGroups = 3;

BatchNorm wide_norm(int64_t channels, const WideResnetOptions& options) {
  return BatchNorm(BatchNormOptions{channels, options.norm_epsilon, options.norm_momentum, options.norm_debias});
}

Conv make_conv(int64_t in, int64_t out, const WideResnetOptions& options, int64_t kernel = 3, int64_t stride = 1) {
  return Conv(ConvOptions{in, out, kernel, stride, /*bias=*/true,
                          options.padding == "same" ? ConvPadding::same : ConvPadding::centred,
                          ConvInit::glorot_uniform});
}

}  // namespace

std::vector<NamedSettings> WideResnetOptions::variants() {
  std::vector<NamedSettings> all;
  for (const auto& [depth, widen] : {std::pair{10, 10}, {16, 4}, {16, 8}, {28, 10}, {40, 4}})
    all.push_back({cat("wrn_", depth, "_", widen), {{"depth", depth}, {"widen", widen}}});
  return all;
}

void WideResnetOptions::declare(OptionSet& set) {
  set.integer("depth", &depth, {10, 1000}, "number of layers, 6 n + 4 for n blocks in each of the three groups");
  set.integer("widen", &widen, {1, 100}, "widening factor: the groups have 16, 32 and 64 times this many channels");
  set.choice("padding", &padding, {"same", "centred"},
             "zero padding at stride 2: asymmetric, as TensorFlow's \"same\", or symmetric");
  set.real("norm_epsilon", &norm_epsilon, {0, 1}, "epsilon of batch norm");
  set.real("norm_momentum", &norm_momentum, {0, 1},
           "momentum of batch norm, as in Keras: fraction of the running average kept at each batch");
  set.flag("norm_debias", &norm_debias,
           "the running averages of batch norm begin with the first batch; false: at mean 0 and variance 1, as in "
           "Keras");
  set.integer(
      "patch", &patch, {0, 4096},
      "side of the square patches that the MoE layer routes, in positions of the last feature map; 0: a quarter of "
      "the map's");
}

void check_depth(const WideResnetOptions& options) {
  if (options.depth % 6 != 4) fail_usage("[model] depth must be 6 n + 4 (10, 16, 22, 28, ...), got ", options.depth);
}

int64_t patch_side(const WideResnetOptions& options, const ImageShape& image) {
  const int64_t height = (image.height + 3) / 4,
                width = (image.width + 3) / 4;  // two groups have stride 2, rounding up
  const int64_t side = options.patch > 0 ? options.patch : std::max<int64_t>(1, height / 4);
  if (height % side != 0 || width % side != 0)
    fail_usage("[model] patch = ", side, " does not divide the feature map of ", height, "x", width,
               ", a quarter of the image's sides; choose a divisor of both sides, or resize the images");
  return side;
}

WideBlock::WideBlock(const WideBlockShape& shape, const WideResnetOptions& options) {
  norm1_ = register_module("norm1", wide_norm(shape.in, options));
  conv1_ = register_module("conv1", make_conv(shape.in, shape.out, options, 3, shape.stride));
  norm2_ = register_module("norm2", wide_norm(shape.out, options));
  conv2_ = register_module("conv2", make_conv(shape.out, shape.out, options));
  if (shape.shortcut) shortcut_ = register_module("shortcut", make_conv(shape.in, shape.out, options, 1, shape.stride));
}

std::vector<engine::ConvStep> WideBlock::conv_steps(WeightType type) const {
  std::vector<engine::ConvStep> steps;
  if (shortcut_) steps.push_back(conv_step(*shortcut_, type));
  engine::ConvStep first = conv_step(*conv1_, type, norm2_.get());
  first.before = packed_affine(*norm1_);
  first.relu = true;
  first.to = engine::ConvBuffer::hidden;
  steps.push_back(std::move(first));
  engine::ConvStep second = conv_step(*conv2_, type);
  second.from = engine::ConvBuffer::hidden;
  second.has_residual = true;
  second.residual = shortcut_ ? engine::ConvBuffer::output : engine::ConvBuffer::input;
  steps.push_back(std::move(second));
  return steps;
}

at::Tensor WideBlock::forward(const at::Tensor& x, const ForwardMode& mode) {
  const at::Tensor hidden = conv1_->forward(at::relu(norm1_->forward(x, mode.batch_statistics)));
  const at::Tensor u = conv2_->forward(at::relu(norm2_->forward(hidden, mode.batch_statistics)));
  return (shortcut_ ? shortcut_->forward(x) : x) + u;
}

WideMoeBlock::WideMoeBlock(const WideBlockShape& shape, const WideResnetOptions& options, const MoeSpec& moe,
                           int64_t side, const std::string& path)
    : norm1_(register_module("norm1", wide_norm(shape.in, options))),
      conv1_(register_module("conv1", make_conv(shape.in, shape.out, options, 3, shape.stride))),
      side_(side) {
  const int64_t width = shape.out * side * side;  // of a token, and of its output
  moe_ = register_module(
      "moe", std::make_shared<MoeLayer>(
                 moe, LayerContext{path + ".moe", width, std::max<int64_t>(1, width / moe.options.experts), width}));
}

std::vector<engine::ConvStep> WideMoeBlock::conv_steps(WeightType type) const {
  std::vector<engine::ConvStep> steps;
  steps.push_back(conv_step(*conv1_, type));
  steps.back().before = packed_affine(*norm1_);
  return steps;
}

engine::Value WideMoeBlock::compile(engine::ProgramBuilder& builder, engine::Value x) const {
  const engine::Value map = engine::add_convs(builder, x, conv_steps(builder.type()));
  const engine::Shape tokens{.height = map.shape.height / side_,
                             .width = map.shape.width / side_,
                             .columns = map.shape.columns * side_ * side_};
  const engine::Value patches =
      builder.add<engine::MapPatchesStep>(map, builder.new_value(tokens), side_, /*to_patches=*/true);
  const engine::Value y = moe_->compile(builder, patches, engine::Value{}, {});
  return builder.add<engine::MapPatchesStep>(y, builder.new_value(map.shape), side_, /*to_patches=*/false);
}

at::Tensor WideMoeBlock::forward(const at::Tensor& x, const ModelInput& input, ModelOutput& out) {
  const at::Tensor map = conv1_->forward(at::relu(norm1_->forward(x, input.mode.batch_statistics)));
  TokenLayout layout;
  layout.images = map.size(0);
  layout.grid_height = map.size(2) / side_;
  layout.grid_width = map.size(3) / side_;
  layout.per_image = layout.grid_height * layout.grid_width;
  const at::Tensor outputs = run_moe(*moe_, image_patches(map, side_).flatten(0, 1), layout, input, out)
                                 .tokens.view({layout.images, layout.per_image, -1});
  return patches_to_images(outputs, side_, map.size(2), map.size(3));
}

WideResnet::WideResnet(const WideResnetOptions& options, const ModelContext& context)
    : ImageModel(context.image, context.pixels) {
  check_depth(options);
  const MoeSpec* moe = context.moe.layers(1)[0];
  stem_ = register_module("stem", make_conv(image_.channels, kStemChannels, options));
  const auto groups = register_module("groups", std::make_shared<torch::nn::Module>());
  const int64_t blocks = options.depth / 6;
  int64_t channels = kStemChannels;
  for (int64_t g = 0; g < kGroups; ++g) {
    const auto group = groups->register_module(cat(g), std::make_shared<torch::nn::Module>());
    for (int64_t i = 0; i < blocks; ++i) {
      const WideBlockShape shape{channels, options.widen * (int64_t{16} << g), g > 0 && i == 0 ? 2 : 1, i == 0};
      channels = shape.out;
      block_names_.push_back(cat("groups.", g, ".", i));
      if (moe && g == kGroups - 1 && i == blocks - 1)
        moe_block_ = group->register_module(
            cat(i),
            std::make_shared<WideMoeBlock>(shape, options, *moe, patch_side(options, image_), block_names_.back()));
      else
        blocks_.push_back(group->register_module(cat(i), std::make_shared<WideBlock>(shape, options)));
    }
  }
  norm_ = register_module("norm", wide_norm(channels, options));
  head_ = register_module("head", GlorotLinear(channels, head_outputs(image_.classes)));
}

std::vector<std::string> WideResnet::tap_names() const {
  std::vector<std::string> names{"stem"};
  names.insert(names.end(), block_names_.begin(), block_names_.end());
  names.emplace_back("norm");
  return names;
}

ImageModel::CompiledOutputs WideResnet::compile_steps(engine::ProgramBuilder& builder) const {
  engine::Value x = engine::add_convs(builder, builder.map(), stem_steps(builder.type()));
  for (const auto& block : blocks_) x = engine::add_convs(builder, x, block->conv_steps(builder.type()));
  if (moe_block_) x = moe_block_->compile(builder, x);
  const engine::Affine affine = packed_affine(*norm_);
  x = builder.add<engine::ElementwiseStep>(x, engine::Value{}, builder.new_value(x.shape), engine::Elementwise::relu,
                                           affine.scale, affine.shift);
  x = engine::add_mean(builder, x);
  const engine::Value f = engine::add_linear(builder, x, packed_linear(head_->weight, head_->bias, WeightType::fp32));
  return {x, image_.classes == 2 ? engine::add_two_classes(builder, f) : f};
}

std::vector<engine::ConvStep> WideResnet::stem_steps(WeightType type) const {
  std::vector<engine::ConvStep> steps;
  steps.push_back(conv_step(*stem_, type));
  return steps;
}

ModelOutput WideResnet::run(const ModelInput& input) {
  ModelOutput out;
  at::Tensor x = stem_->forward(input.images);
  tap(input, out, x, "stem");
  for (size_t i = 0; i < blocks_.size(); ++i) {
    x = blocks_[i]->forward(x, input.mode);
    tap(input, out, x, block_names_[i]);
  }
  if (moe_block_) {
    x = moe_block_->forward(x, input, out);
    tap(input, out, x, block_names_.back());
  }
  x = norm_->forward(x, input.mode.batch_statistics);
  tap(input, out, x, "norm");
  out.features = at::relu(x).mean({2, 3});
  return out;
}

std::vector<PartCost> WideBlock::cost(const std::string& path, MapSize& map) const {
  MapSize in = map;
  std::vector<PartCost> parts{norm_part(path + ".norm1", norm1_, map)};
  parts.push_back(conv_part(path + ".conv1", conv1_, map));
  parts.push_back(norm_part(path + ".norm2", norm2_, map));
  parts.push_back(conv_part(path + ".conv2", conv2_, map));
  parts.back().cost =
      parts.back().cost + on_units(elementwise_cost(conv2_->weight.size(0)), map.positions());  // the sum
  if (shortcut_) parts.push_back(conv_part(path + ".shortcut", shortcut_, in));
  return parts;
}

std::vector<PartCost> WideMoeBlock::cost(const std::string& path, MapSize& map, const CostOptions& options) const {
  std::vector<PartCost> parts{norm_part(path + ".norm1", norm1_, map)};
  parts.push_back(conv_part(path + ".conv1", conv1_, map));
  const int64_t height = map.height / side_, width = map.width / side_;
  for (PartCost& part : moe_->cost({1, height * width, 0, height, width}, options)) {
    part.output = map_text(conv1_->weight.size(0), map);
    parts.push_back(part);
  }
  return parts;
}

std::vector<PartCost> WideResnet::cost(const CostOptions& options) const {
  MapSize map{image_.height, image_.width};
  std::vector<PartCost> parts{conv_part("stem", stem_, map)};
  for (size_t i = 0; i < blocks_.size(); ++i) append(parts, blocks_[i]->cost(block_names_[i], map));
  if (moe_block_) append(parts, moe_block_->cost(block_names_.back(), map, options));
  parts.push_back(norm_part("norm", norm_, map));
  const Cost mean = on_units(elementwise_cost(head_->weight.size(1)), map.positions());
  parts.push_back({"head", head_->cost() + mean, std::to_string(head_->weight.size(0))});
  return parts;
}

at::Tensor WideResnet::classify(const at::Tensor& features) {
  const at::Tensor f = as_logits(head_->forward(features));
  return image_.classes == 2 ? two_class_logits(f) : f;
}

}  // namespace sparsight
