#include "sparsight/data/transforms/pipeline.h"

#include "sparsight/data/transforms/to_float.h"

namespace sparsight {
namespace {

// `normalize` as the last step. A byte that the model multiplies by 255 again is then exact: the results are those of
// normalising the bytes themselves.
TransformOp pixels_for(const PixelStatistics& statistics) {
  TransformOp op = [statistics](const at::Tensor& image, RandomStream&) {
    check_channels(statistics, image.size(0));
    return to_exact_float(image);
  };
  op.compiled.emplace();
  return op;
}

NormalizeOptions normalize_options(const Json& settings, const std::string& where) {
  NormalizeOptions options;
  OptionSet set;
  options.declare(set);
  assign(set, settings, where);
  return options;
}

}  // namespace

TransformPipeline::TransformPipeline(const Json& steps, const std::string& where) {
  bool normalized = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    Json settings = steps[i];
    const std::string step = cat(where, "[", i, "]");
    if (!settings.contains("op") || !settings["op"].is_string())
      fail_usage(step, " must name its transform, as in {op = \"resize\", size = [32, 32]}; known: ",
                 join(transform_ops().names()));
    const std::string name = settings["op"];
    settings.erase("op");
    if (name != "normalize") {
      ops_.push_back(transform_ops().make(name, settings, step));
      continue;
    }
    if (!statistics_.empty()) fail_usage(step, " is a second normalize; a list can have one");
    const NormalizeOptions options = normalize_options(settings, step);
    statistics_ = pixel_statistics(options);
    ops_.push_back(i + 1 == steps.size() ? pixels_for(statistics_) : make_normalize(options));
    normalized = i + 1 < steps.size();
  }
  if (normalized) ops_.push_back(make_denormalize(statistics_));
}

std::optional<engine::Preprocessing> TransformPipeline::compile(int64_t channels, int64_t height, int64_t width) const {
  engine::Preprocessing compiled{{}, !statistics_.empty(), channels, height, width};
  for (const TransformOp& op : ops_) {
    if (!op.compiled) return std::nullopt;
    compiled.steps.insert(compiled.steps.end(), op.compiled->begin(), op.compiled->end());
  }
  return compiled;
}

at::Tensor TransformPipeline::operator()(const at::Tensor& image, ViewRandom& random) const {
  at::Tensor result = image;
  for (const TransformOp& op : ops_) result = op(result, random);
  return to_float(result).contiguous();
}

}  // namespace sparsight
