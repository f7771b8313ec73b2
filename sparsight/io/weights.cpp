#include "sparsight/io/weights.h"

#include <cmath>
#include <set>
#include <sstream>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/ops/sum_of_squares.h"

namespace sparsight {
namespace {

constexpr size_t kShownNames = 8, kNamesInErrors = 3;

std::string shape_text(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes();
  return text.str();
}

void check_finite(const std::string& name, const at::Tensor& tensor) {
  if (!tensor.is_floating_point() || std::isfinite(sum_of_squares({tensor}))) return;
  if (tensor.isfinite().all().item<bool>()) return;  // only their squares overflow
  fail("tensor ", printable(name), " holds NaN or infinity; the file is damaged, or its training failed");
}

std::string first_names(const std::vector<std::string>& names, size_t count = kNamesInErrors) {
  std::vector<std::string> shown(names.begin(), names.begin() + std::min(names.size(), count));
  if (names.size() > count) shown.push_back(cat("and ", names.size() - count, " more"));
  return join(shown);
}

void check_strict(const LoadReport& report) {
  if (!report.fresh.empty()) fail("the file has no fitting weights for ", first_names(report.fresh));
  if (!report.unused.empty()) fail("the file has weights that the model does not have: ", first_names(report.unused));
}

}  // namespace

NamedTensors named_weights(const torch::nn::Module& module) {
  NamedTensors weights;
  for (const auto& entry : module.named_parameters()) weights.emplace_back(entry.key(), entry.value());
  for (const auto& entry : module.named_buffers()) weights.emplace_back(entry.key(), entry.value());
  return weights;
}

LoadReport load_weights(torch::nn::Module& module, const NamedTensors& tensors, const LoadOptions& options) {
  const std::map<std::string, at::Tensor> file(tensors.begin(), tensors.end());
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // target, source; copied last, when nothing can fail any more
  std::set<std::string> used;
  LoadReport report;
  for (const auto& [name, target] : named_weights(module)) {
    at::Tensor source;
    if (const auto found = file.find(name); found == file.end()) {
      const auto derived = options.derive ? options.derive(name, target, file) : std::nullopt;
      if (!derived) {
        report.fresh.push_back(name);
        continue;
      }
      source = derived->tensor;
      used.insert(derived->used.begin(), derived->used.end());
      report.adapted.push_back(name + " (" + derived->how + ")");
    } else {
      source = found->second;
      used.insert(name);
      if (source.sizes() != target.sizes() || source.is_complex() != target.is_complex()) {
        const auto adapted = options.adapt ? options.adapt(name, source, target) : std::nullopt;
        if (!adapted) {
          report.fresh.push_back(
              cat(name, " (", shape_text(source), " in the file, ", shape_text(target), " in the model)"));
          continue;
        }
        source = adapted->tensor;
        report.adapted.push_back(name + " (" + adapted->how + ")");
      } else {
        report.loaded.push_back(name);
      }
    }
    if (!options.allow_non_finite) check_finite(name, source);
    copies.emplace_back(target, source);
  }
  for (const auto& [name, tensor] : tensors)
    if (!used.count(name)) report.unused.push_back(name);
  if (options.strict) check_strict(report);
  if (copies.empty()) fail("no tensor of the file fits the model; the file has ", first_names(report.unused));
  const torch::NoGradGuard no_grad;
  for (auto& [target, source] : copies) target.copy_(source);
  return report;
}

std::string describe(const LoadReport& report) {
  std::string text = cat(report.loaded.size(), " tensors loaded, ", report.adapted.size(), " adapted, ",
                         report.fresh.size(), " kept fresh, ", report.unused.size(), " unused");
  const auto add = [&](const char* title, const std::vector<std::string>& names) {
    if (!names.empty()) text += cat("; ", title, ": ", first_names(names, kShownNames));
  };
  add("adapted", report.adapted);
  add("kept fresh", report.fresh);
  add("unused", report.unused);
  return text;
}

}  // namespace sparsight
