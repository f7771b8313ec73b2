#include "cli/cmd_explain.h"

#include <memory>

#include "cli/model_arguments.h"
#include "cli/verbs.h"

namespace sparsight::cli {

void add_explain(CLI::App& app) {
  auto arguments = std::make_shared<ExplainArguments>();
  ExplainRequest& request = arguments->request;
  CLI::App* verb =
      add_verb(app, "explain",
               "Show what each expert processes: expert load, classes, and images with patches coloured by expert",
               "sparsight explain runs/demo\n"
               "sparsight explain runs/demo --split train\n"
               "sparsight explain runs/demo photo.jpg more_photos/\n"
               "sparsight explain runs/demo photo.jpg --out photo_explained\n"
               "sparsight explain runs/demo --set data.root=/elsewhere\n"
               "sparsight explain runs/demo noisy/ --routing routing_of_clean.safetensors\n"
               "sparsight explain runs/demo --json");
  verb->add_option("run", request.run, "Run folder or exported model")->required()->type_name("RUN");
  verb->add_option("images", request.paths, "Image files and folders (default: images of the run's dataset)")
      ->type_name("IMAGES");
  verb->add_option("--split", request.split, "Split of the run's dataset: train, val or test (default: test)")
      ->check(CLI::IsMember({"train", "val", "test"}));
  verb->add_option(
          "--out", arguments->out,
          "Folder to write (default: RUN/explain, or RUN/explain_images for given images; both are in the report)")
      ->type_name("FOLDER");
  verb->add_option("--images", request.images, "Number of images to use from the run's dataset")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->capture_default_str()
      ->type_name("N");
  verb->add_option("--examples", request.examples, "Number of example images to save")
      ->check(CLI::Range(int64_t{0}, int64_t{64}))
      ->capture_default_str()
      ->type_name("N");
  add_checkpoint_option(*verb, request.checkpoint);
  add_routing_options(*verb, request.routing, request.save_routing);
  add_overrides_option(*verb, request.overrides);
  verb->add_flag("--json", arguments->json, "Print explain.json instead of the summary");
  verb->callback([arguments] { run_explain(*arguments); });
}

}  // namespace sparsight::cli
