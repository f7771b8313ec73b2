#include "sparsight/infer/explain_run.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "sparsight/analysis/explain.h"
#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/path_text.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/domainbed/published_domains.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/infer/frozen_model.h"
#include "sparsight/infer/image_list.h"
#include "sparsight/infer/loaded_model.h"
#include "sparsight/infer/named_split.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/io/shard_index.h"
#include "sparsight/models/routing_file.h"
#include "sparsight/report/format.h"
#include "sparsight/report/run/explain_items.h"

namespace sparsight {

namespace {

struct Images {
  std::vector<ExplainItem> items;
  std::string what;  // "500 images of the test split of glyphs"
};

Images images_of_run(const LoadedModel& loaded, const std::string& split, int64_t count) {
  const uint64_t seed = static_cast<uint64_t>(read_section<RunOptions>(loaded.config, "run").seed);
  const DataSplits splits = make_component(data_sets(), loaded.config, "data", DataContext{seed});
  for (const std::string& name : split.empty() ? std::vector<std::string>{"test", "val"} : std::vector{split}) {
    const DataSetPtr data = named_split(splits, name);
    if (!data || data->size() == 0) continue;
    std::vector<ExplainItem> items = data_set_items(data, count);
    std::string what = cat(items.size(), items.size() == 1 ? " image" : " images", " of the ", split_name(name),
                           " split of ", data->info().name, tests_on_validation(splits, name) ? " (= validation)" : "");
    return {std::move(items), std::move(what)};
  }
  if (!split.empty()) fail("the run's data has no ", split_name(split), " images; choose another --split");
  fail("the run's data has no test and no validation images; name image files or folders");
}

Images given_images(const LoadedModel& loaded, const ExplainRequest& request) {
  if (!request.split.empty())
    fail_usage("--split ", request.split, " chooses images of the run's dataset; leave it out or name no images");
  std::vector<ExplainItem> items =
      file_items(image_list(request.paths, std::cin), loaded.data.classes, loaded.data.channels);
  std::string what = cat(items.size(), items.size() == 1 ? " image file" : " image files");
  return {std::move(items), std::move(what)};
}

// The folder domain/class/image of the run's dataset; "" for other datasets.
std::string domain_root(const Json& data) {
  const auto text = [&](const char* key) { return data.value(key, std::string()); };
  if (text("name") == "domain_folder") return data_root(text("root"), "");
  if (text("name") != "domainbed") return "";
  if (text("set") == "folder") return data_root(text("root"), "");
  const auto& published = published_domains();
  const auto found = std::ranges::find(published, text("set"), &PublishedDomains::name);
  return found == published.end() ? "" : data_root(text("root"), found->folder);
}

// Whether images only change their size, so that keypoints scale with them.
bool only_resizes(const Json& steps) {
  bool resizes = false;
  for (const Json& step : steps) {
    const auto op = step.value("op", std::string());
    const bool whole = op == "resize" && step.contains("size") && step["size"].is_array();
    if (!whole && op != "normalize") return false;
    resizes = resizes || whole;
  }
  return resizes;
}

// The parts of objects in the images of the run's dataset (keypoints.csv); none without such a file.
CubDgKeypoints read_keypoints(const LoadedModel& loaded) {
  const std::string root = domain_root(loaded.config.at("data"));
  if (root.empty() || !has_cub_dg_keypoints(root)) return {};
  if (!only_resizes(loaded.config.at("transforms").at("eval"))) {
    log_warning("the keypoints of ", printable(root),
                " are left out: transforms.eval must only resize to [height, width]");
    return {};
  }
  CubDgKeypoints keypoints = read_cub_dg_keypoints(root);
  for (const auto& [id, parts] : keypoints)
    if (!std::filesystem::exists(root + "/" + id))
      fail(printable(root), "/keypoints.csv has keypoints of ", id, ", which is not there; make the dataset again");
  return keypoints;
}

// Both halves of an environment of DomainBed, "photo/in" and "photo/out", are one domain.
std::vector<std::string> merge_halves(const std::vector<std::string>& domains, std::vector<ExplainItem>& items) {
  std::vector<std::string> names;
  std::vector<int64_t> number;
  for (const std::string& domain : domains) {
    const size_t end = domain.ends_with("/in") ? 3 : domain.ends_with("/out") ? 4 : 0;
    const std::string name = domain.substr(0, domain.size() - end);
    if (const auto found = std::ranges::find(names, name); found != names.end()) {
      number.push_back(found - names.begin());
    } else {
      number.push_back(std::ssize(names));
      names.push_back(name);
    }
  }
  for (ExplainItem& item : items)
    item.domain = item.domain >= 0 && item.domain < std::ssize(number) ? number[static_cast<size_t>(item.domain)] : -1;
  return names;
}

}  // namespace

Explanation explain_run(const ExplainRequest& request) {
  const bool alone = is_frozen_model(request.run) || is_sharded(request.run);
  LoadedModel loaded =
      load_model(alone ? request.run : RunFolder::open(request.run).path(), request.checkpoint, request.overrides);
  Images images =
      request.paths.empty() ? images_of_run(loaded, request.split, request.images) : given_images(loaded, request);
  const int64_t count = static_cast<int64_t>(images.items.size());
  compile(loaded, count);
  std::optional<RoutingRecordWriter> record;
  if (!request.save_routing.empty()) {
    const AtomicFile writable(request.save_routing);
    record.emplace(request.save_routing);
  }
  ExplainOptions options;
  options.examples = request.examples;
  options.attributes = loaded.data.attributes;
  options.cell_grid = loaded.data.cell_grid;
  if (request.paths.empty()) {
    options.domains = merge_halves(loaded.data.domains, images.items);
    options.keypoints = read_keypoints(loaded);
  }
  options.super_class_of = loaded.super_class_of;
  options.sigmoid = loaded.task_loss == TaskLoss::sigmoid_cross_entropy;
  options.replay = read_replay(request.routing, count, cat(count, " are explained"));
  if (record) options.record = &*record;
  Explanation explanation =
      explain_images([&](const ModelInput& input) { return loaded.forward(input); }, images.items,
                     [&](const at::Tensor& image) { return model_image(loaded, image); }, loaded.data.classes, options);
  if (record) {
    Json source = routing_source(loaded);
    if (request.paths.empty()) source["domains"] = options.domains;
    if (!request.split.empty()) source["split"] = request.split;
    record->commit(source);
  }
  explanation.super_classes = loaded.data.super_classes;
  explanation.super_class_of = loaded.data.super_class_of;
  explanation.guided = !options.super_class_of.empty();
  const std::filesystem::path model_file = without_slashes_at_end(loaded.path);
  explanation.source = cat(model_file.stem().string(), " checkpoint (step ", loaded.step, "), ", images.what,
                           request.routing.empty() ? "" : ", routing of " + printable(request.routing));
  return explanation;
}

}  // namespace sparsight
