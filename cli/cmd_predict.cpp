#include "cli/cmd_predict.h"

#include <memory>

#include "cli/model_arguments.h"
#include "cli/verbs.h"

namespace sparsight::cli {

void add_predict(CLI::App& app) {
  auto arguments = std::make_shared<PredictArguments>();
  CLI::App* verb = add_verb(app, "predict", "Classify images and show which experts they used",
                            "sparsight predict runs/demo cat.png photos/\n"
                            "sparsight predict runs/demo --weights int8 photos/\n"
                            "sparsight predict runs/demo --set router.eval_k=2 photos/\n"
                            "sparsight predict runs/demo clean.png --save-routing r.safetensors\n"
                            "sparsight predict runs/demo noisy.png --routing r.safetensors\n"
                            "sparsight predict vit_small.safetensors --labels imagenet1k photos/\n"
                            "sparsight predict runs/demo --json --top 1 photos/ > predictions.jsonl\n"
                            "sparsight predict runs/demo --processes 2 photos/\n"
                            "find photos -name '*.jpg' | sparsight predict runs/demo -");
  verb->add_option("run", arguments->run, "Run folder, checkpoint, exported model, or weights in one file or several")
      ->required()
      ->type_name("RUN");
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
  add_bare_weights_options(*verb, arguments->bare);
  add_pack_cache_option(*verb, arguments->pack_cache);
  add_routing_options(*verb, arguments->routing, arguments->save_routing);
  verb->add_flag("--json", arguments->json, "Print one JSON object per line");
  arguments->launch.declare(*verb,
                            "Predict with so many processes on this machine, which share the images: the same "
                            "answers; names on standard input are read to the end first");
  verb->callback([arguments] { run_predict(*arguments); });
}

}  // namespace sparsight::cli
