#include "sparsight/train/initial_weights.h"

#include "sparsight/core/log.h"
#include "sparsight/io/weight_names.h"
#include "sparsight/models/adapt_weights.h"

namespace sparsight {
namespace {

// The pixel statistics of the configuration apply, whatever the file's model was trained with.
NamedTensors without_pixel_statistics(NamedTensors tensors, const PixelStatistics& pixels, const std::string& path) {
  const auto values = [&](const std::string& name) {
    for (const auto& [key, tensor] : tensors)
      if (key == name) {
        const at::Tensor flat = tensor.to(at::kDouble).flatten().contiguous();
        return std::vector<double>(flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel());
      }
    return std::vector<double>();
  };
  const PixelStatistics of_file{values("normalize.mean"), values("normalize.std")};
  if (!of_file.empty() && !(of_file == pixels))
    log_warning(path, " was trained on images normalised by ", to_text(of_file), ", this model normalises by ",
                to_text(pixels), ", as set in [transforms]");
  std::erase_if(tensors, [](const auto& entry) { return is_pixel_statistics(entry.first); });
  return tensors;
}

}  // namespace

void load_initial_weights(ImageModel& model, const std::string& path, const UpcycleOptions& upcycle) {
  LoadOptions options;
  options.adapt = weight_adapter(model);
  options.derive = upcycle_dense_mlps(model, upcycle);
  LoadReport report =
      load_weights(model, without_pixel_statistics(read_weights(path), model.pixel_statistics(), path), options);
  std::erase_if(report.fresh, is_pixel_statistics);  // set by the configuration, so not reported as fresh
  log_info(path, ": ", describe(report));
}

}  // namespace sparsight
