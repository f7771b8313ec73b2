#include <unistd.h>

#include <iostream>
#include <optional>
#include <sstream>

#include "cli/cmd_predict.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/run_in_group.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/log.h"
#include "sparsight/dist/rank_zero.h"
#include "sparsight/infer/bare_weights.h"
#include "sparsight/infer/image_list.h"
#include "sparsight/infer/model_path.h"
#include "sparsight/infer/predict_files.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/models/routing_file.h"
#include "sparsight/models/routing_record.h"

namespace sparsight::cli {
namespace {

// The routings in a file belong to the images by position, so all of these must be known first. So they must where
// several ranks share them, who get the list of rank 0.
std::vector<std::string> all_images(const PredictArguments& arguments, dist::Group& group) {
  if (group.size() == 1 && arguments.routing.empty()) return arguments.images;
  std::istringstream listed(dist::from_rank_zero(group, [&] {
    std::string list;
    for (const std::string& name : image_list(arguments.images, std::cin)) list += name + '\0';
    return list;
  }));
  std::vector<std::string> names;
  for (std::string name; std::getline(listed, name, '\0');) names.push_back(name);
  return names;
}

// Every image gets a prediction or an error line; an unreadable image does not stop the others.
void predict_in_group(const PredictArguments& arguments, dist::Group& group) {
  check_model_is_first(arguments.run, arguments.images);
  check_model_exists(arguments.run);
  ImageNames names(all_images(arguments, group), STDIN_FILENO);
  LoadedModel model = load_model_or_weights({arguments.run, arguments.checkpoint, arguments.overrides, arguments.bare,
                                             /*needs_data=*/false, arguments.pack_cache});
  compile(model, names.total(), arguments.weights);
  const RoutingReplay replay = read_replay(arguments.routing, names.total(), cat(names.total(), " were given"));
  std::optional<RoutingRecordWriter> record;
  if (group.leads() && !arguments.save_routing.empty()) {
    const AtomicFile writable(arguments.save_routing);
    record.emplace(arguments.save_routing);
  }
  const auto answer = [&](const Prediction& prediction) {
    if (record) record->add(prediction.routings, std::vector{RoutedImage{prediction.image}});
    output() << (arguments.json ? json_text(to_json(prediction)) : to_text(prediction)) << std::endl;
  };
  const PredictFilesResult result = predict_files(model, names, replay, {.top = arguments.top}, answer, group);
  if (result.failed == 0 && record) {
    record->commit(routing_source(model));
    log_info("routing: ", arguments.save_routing);
  }
  if (result.failed > 0 && record)
    log_warning(arguments.save_routing, " is not written: the images that failed would be missing from it");
  if (result.failed > 0) fail(result.failed, " of ", result.images, " images could not be processed");
}

}  // namespace

void run_predict(const PredictArguments& arguments) {
  begin_interruptible_work();
  run_in_group(arguments.launch, [&](const dist::GroupPtr& group) { predict_in_group(arguments, *group); });
}

}  // namespace sparsight::cli
