#include "sparsight/train/class_weights.h"

#include <algorithm>

#include <ATen/ops/tensor.h>

#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/eval/task_loss.h"

namespace sparsight {
namespace {

constexpr size_t kNamedEmptyClasses = 5;

std::vector<int64_t> images_by_class(const DataSet& images) {
  std::vector<int64_t> counts(images.info().classes.size(), 0);
  for (int64_t i = 0; i < images.size(); ++i) ++counts.at(static_cast<size_t>(images.label(i)));
  return counts;
}

void warn_of_empty_classes(const DataInfo& info, const std::vector<int64_t>& counts) {
  std::vector<std::string> names;
  for (size_t k = 0; k < counts.size(); ++k)
    if (counts[k] == 0) names.push_back(printable(info.classes[k]));
  if (names.empty()) return;
  const size_t count = names.size();
  if (count > kNamedEmptyClasses) names.resize(kNamedEmptyClasses);
  log_warning("train.class_weights = \"balanced\" gives weight 0 to ", count,
              count == 1 ? " class without training images: " : " classes without training images: ", join(names),
              count > kNamedEmptyClasses ? ", ..." : "");
}

std::vector<double> balanced_weights(const DataSet& images, const std::vector<int64_t>& counts) {
  warn_of_empty_classes(images.info(), counts);
  const auto classes = static_cast<double>(std::ssize(counts) - std::ranges::count(counts, 0));
  std::vector<double> weights;
  for (const int64_t n : counts)
    weights.push_back(n == 0 ? 0 : static_cast<double>(images.size()) / (classes * static_cast<double>(n)));
  return weights;
}

std::vector<double> given_weights(const Json& list, const std::vector<int64_t>& counts) {
  if (list.size() != counts.size())
    fail_usage("train.class_weights has ", list.size(), list.size() == 1 ? " number" : " numbers",
               ", but the data has ", counts.size(), " classes; give one for each, or \"balanced\"");
  return list.get<std::vector<double>>();
}

}  // namespace

at::Tensor training_class_weights(const TrainOptions& options, const DataSet& images) {
  const Json& setting = options.class_weights;
  if (setting == "none") return {};
  need_single_labels(images.info(), "train.class_weights");
  if (task_loss_named(options.task_loss, images.info()) != TaskLoss::cross_entropy)
    fail_usage(
        "train.class_weights weigh the classes of a softmax, but train.task_loss is \"sigmoid_cross_entropy\"; leave "
        "out one of the two");
  const std::vector<int64_t> counts = images_by_class(images);
  const std::vector<double> weights =
      setting.is_array() ? given_weights(setting, counts) : balanced_weights(images, counts);
  bool any = false;
  double low = 0, high = 0;
  for (size_t k = 0; k < weights.size(); ++k) {
    if (counts[k] == 0 || weights[k] == 0) continue;
    low = any ? std::min(low, weights[k]) : weights[k];
    high = std::max(high, weights[k]);
    any = true;
  }
  if (!any) fail_usage("train.class_weights must be above 0 for a class that has training images");
  log_info("weights of the classes in the training loss: ", low, " to ", high);
  return at::tensor(weights, at::kDouble);
}

}  // namespace sparsight
