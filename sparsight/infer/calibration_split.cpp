#include "sparsight/infer/calibration_split.h"

#include <algorithm>

#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/config.h"
#include "sparsight/data/decorators/subset.h"
#include "sparsight/data/register_data.h"
#include "sparsight/infer/named_split.h"

namespace sparsight {

CalibrationSplit calibration_split(const LoadedModel& loaded, const std::vector<std::string>& splits, int64_t images) {
  const auto seed = static_cast<uint64_t>(read_section<RunOptions>(loaded.config, "run").seed);
  const DataSplits sets = make_component(data_sets(), loaded.config, "data", DataContext{seed});
  for (const std::string& name : splits) {
    DataSetPtr data = named_split(sets, name);
    if (!data || data->size() == 0) continue;
    check_classes(loaded, data->info());
    const int64_t all = data->size(), count = images > 0 ? std::min(images, all) : all;
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < count; ++i) indices.push_back(i * all / count);
    return {name, count == all ? data : std::make_shared<SubsetDataSet>(data, std::move(indices))};
  }
  return {};
}

std::unique_ptr<Loader> calibration_loader(const LoadedModel& loaded, const CalibrationSplit& on) {
  return evaluation_loader(on.data, loaded.eval_transforms, read_section<LoaderOptions>(loaded.config, "loader"));
}

}  // namespace sparsight
