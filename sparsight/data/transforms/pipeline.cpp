#include "sparsight/data/transforms/pipeline.h"

#include "sparsight/data/transforms/to_float.h"

namespace sparsight {

TransformPipeline::TransformPipeline(const Json& steps, const std::string& where) {
  for (size_t i = 0; i < steps.size(); ++i) {
    Json settings = steps[i];
    const std::string place = cat(where, "[", i, "]");
    if (!settings.contains("op") || !settings["op"].is_string())
      fail_usage(place, " must name its transform, as in {op = \"resize\", size = [32, 32]}; known: ",
                 join(transform_ops().names()));
    const std::string name = settings["op"];
    settings.erase("op");
    ops_.push_back(transform_ops().make(name, settings, place));
  }
}

at::Tensor TransformPipeline::operator()(const at::Tensor& image, RandomStream& random) const {
  at::Tensor result = image;
  for (const TransformOp& op : ops_) result = op(result, random);
  return to_float(result).contiguous();
}

}  // namespace sparsight
