#include "sparsight/infer/explain_run.h"

#include <filesystem>
#include <iostream>

#include "sparsight/analysis/explain.h"
#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/register_data.h"
#include "sparsight/infer/image_list.h"
#include "sparsight/infer/loaded_model.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/models/routing_file.h"
#include "sparsight/report/explain_items.h"

namespace sparsight {

namespace {

struct Images {
  std::vector<ExplainItem> items;
  std::string what;  // one of them: "glyphs test image"
};

Images images_of_run(const LoadedModel& loaded, int64_t count) {
  const uint64_t seed = static_cast<uint64_t>(read_section<RunOptions>(loaded.config, "run").seed);
  const DataSplits splits = make_component(data_sets(), loaded.config, "data", DataContext{seed});
  for (const auto& [data, name] : {std::pair{splits.test, "test"}, {splits.validation, "validation"}})
    if (data && data->size() > 0) return {data_set_items(data, count), cat(data->info().name, " ", name, " image")};
  fail("the run's data has no test and no validation images; name image files or folders");
}

}  // namespace

Explanation explain_run(const ExplainRequest& request) {
  const LoadedModel loaded = load_model(RunFolder::open(request.run).path(), request.checkpoint, request.overrides);
  const Images images =
      request.paths.empty()
          ? images_of_run(loaded, request.images)
          : Images{file_items(image_list(request.paths, std::cin), loaded.data.classes, loaded.data.channels),
                   "image file"};
  const int64_t count = static_cast<int64_t>(images.items.size());
  if (!request.save_routing.empty()) const AtomicFile writable(request.save_routing);
  RoutingCollector decisions;
  ExplainOptions options;
  options.examples = request.examples;
  options.attributes = loaded.data.attributes;
  options.cell_grid = loaded.data.cell_grid;
  options.replay = read_replay(request.routing, count, cat(count, " are explained"));
  if (!request.save_routing.empty()) options.decisions = &decisions;
  Explanation explanation = explain_images(
      *loaded.model, images.items, [&](const at::Tensor& image) { return model_image(loaded, image); },
      loaded.data.classes, options);
  if (options.decisions) write_routings(request.save_routing, decisions.all());
  explanation.source = cat(std::filesystem::path(loaded.path).stem().string(), " checkpoint (step ", loaded.step, "), ",
                           explanation.images, " ", images.what, count == 1 ? "" : "s",
                           request.routing.empty() ? "" : ", routing of " + printable(request.routing));
  return explanation;
}

}  // namespace sparsight
