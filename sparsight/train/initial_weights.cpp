#include "sparsight/train/initial_weights.h"

#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/io/weight_names.h"
#include "sparsight/models/adapt_weights.h"
#include "sparsight/models/normalize.h"

namespace sparsight {
namespace {

// The pixel statistics of the configuration apply, whatever the file's model was trained with.
NamedTensors without_pixel_statistics(NamedTensors tensors, const PixelStatistics& pixels, const std::string& path) {
  const PixelStatistics of_file = find_pixel_statistics(tensors);
  if (!of_file.empty() && !(of_file == pixels))
    log_warning(path, " was trained on images normalised by ", to_text(of_file), ", this model normalises by ",
                to_text(pixels), ", as set in [transforms]");
  std::erase_if(tensors, [](const auto& entry) { return is_pixel_statistics(entry.first); });
  return tensors;
}

// A new head is what fine-tuning to other classes is about; a count of batches only weights those of a running average.
bool is_expected(const std::string& entry) {
  if (entry.starts_with("head.norm.")) return false;  // ConvNeXt's last norm, whatever the classes
  for (const char* head : {"head.", "head_dist.", "fc.", "classifier."})
    if (entry.starts_with(head)) return true;
  return entry.ends_with("num_batches_tracked");
}

// A file of a dense model has no routers.
bool is_router(const std::string& entry) {
  return entry.starts_with("router.") || entry.find(".router.") != std::string::npos;
}

// "blocks.0.ls1.gamma (not in the model), ...": what the run would silently do without; "" if there is nothing.
std::string lost_weights(const LoadReport& report, bool upcycled) {
  constexpr size_t kShown = 8;
  std::vector<std::string> lost;
  for (const std::string& entry : report.unused)
    if (!is_expected(entry)) lost.push_back(entry + " (not in the model)");
  for (const std::string& entry : report.fresh)
    if (!is_expected(entry) && !(upcycled && is_router(entry)))
      lost.push_back(entry + (entry.ends_with(')') ? "" : " (not in the file)"));
  const size_t count = lost.size();
  if (count > kShown) lost.resize(kShown);
  return join(lost) + (count > kShown ? cat(" and ", count - kShown, " more") : "");
}

}  // namespace

bool load_initial_weights(ImageModel& model, const std::string& path, const UpcycleOptions& upcycle,
                          bool allow_missing) {
  LoadOptions options;
  options.adapt = weight_adapter(model);
  bool upcycled = false;
  options.derive = [&, derive = upcycle_dense_mlps(model, upcycle)](const auto&... arguments) {
    auto derived = derive(arguments...);
    upcycled = upcycled || derived;
    return derived;
  };
  LoadReport report =
      load_weights(model, without_pixel_statistics(read_weights(path), model.pixel_statistics(), path), options);
  std::erase_if(report.fresh, is_pixel_statistics);  // set by the configuration, so not reported as fresh
  if (const std::string lost = lost_weights(report, upcycled); !lost.empty()) {
    if (!allow_missing)
      fail(path, " does not fit the model: ", lost, "; change the model's settings, or go on with --allow-missing");
    log_warning(path, " does not fit the model: ", lost);
  }
  log_info(path, ": ", describe(report));
  return upcycled;
}

}  // namespace sparsight
