#include <unistd.h>

#include <iostream>
#include <memory>

#include "cli/model_arguments.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/log.h"
#include "sparsight/infer/image_list.h"
#include "sparsight/infer/predict_files.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/models/routing_file.h"

namespace sparsight::cli {
namespace {

struct PredictArguments {
  std::string run, checkpoint, weights, routing, save_routing;
  std::vector<std::string> images, overrides;
  int64_t top = 3;
  bool json = false;
};

// The routings in a file belong to the images by position, so all of these must be known first.
std::vector<std::string> all_images(const PredictArguments& arguments) {
  return arguments.routing.empty() ? arguments.images : image_list(arguments.images, std::cin);
}

// Every image gets a prediction or an error line; an unreadable image does not stop the others.
void predict_images(const PredictArguments& arguments) {
  ImageNames names(all_images(arguments), STDIN_FILENO);
  LoadedModel model = load_model(arguments.run, arguments.checkpoint, arguments.overrides);
  if (!arguments.weights.empty()) pack_weights(model, arguments.weights);
  const RoutingReplay replay = read_replay(arguments.routing, names.total(), cat(names.total(), " were given"));
  if (!arguments.save_routing.empty()) const AtomicFile writable(arguments.save_routing);
  RoutingCollector decisions;
  const PredictFilesResult result =
      predict_files(model, names, replay, {.top = arguments.top}, [&](const Prediction& prediction) {
        if (!arguments.save_routing.empty()) decisions.add(prediction.routings);
        output() << (arguments.json ? json_text(to_json(prediction)) : to_text(prediction)) << std::endl;
      });
  if (result.failed == 0 && !arguments.save_routing.empty()) {
    write_routings(arguments.save_routing, decisions.all());
    log_info("routing: ", arguments.save_routing);
  }
  if (result.failed > 0 && !arguments.save_routing.empty())
    log_warning(arguments.save_routing, " is not written: the images that failed would be missing from it");
  if (result.failed > 0) fail(result.failed, " of ", result.images, " images could not be processed");
}

}  // namespace

void add_predict(CLI::App& app) {
  auto arguments = std::make_shared<PredictArguments>();
  CLI::App* verb = add_verb(app, "predict", "Classify images and show which experts they used",
                            "sparsight predict runs/demo cat.png photos/\n"
                            "sparsight predict runs/demo --weights int8 photos/\n"
                            "sparsight predict runs/demo --set router.eval_k=2 photos/\n"
                            "sparsight predict runs/demo clean.png --save-routing r.safetensors\n"
                            "sparsight predict runs/demo noisy.png --routing r.safetensors\n"
                            "sparsight predict runs/demo --json --top 1 photos/ > predictions.jsonl\n"
                            "find photos -name '*.jpg' | sparsight predict runs/demo -");
  verb->add_option("run", arguments->run, "Run folder or checkpoint file")->required()->type_name("RUN");
  verb->add_option("images", arguments->images,
                   "Image files or folders, or - for the lines of standard input, each answered as it comes")
      ->required()
      ->type_name("IMAGES");
  verb->add_option("--top", arguments->top, "Number of classes to print per image")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  add_checkpoint_option(*verb, arguments->checkpoint);
  add_weights_option(*verb, arguments->weights);
  add_overrides_option(*verb, arguments->overrides);
  add_routing_options(*verb, arguments->routing, arguments->save_routing);
  verb->add_flag("--json", arguments->json, "Print one JSON object per line");
  interruptible(verb, [arguments] { predict_images(*arguments); });
}

}  // namespace sparsight::cli
