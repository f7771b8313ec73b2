#include "cli/cmd_export.h"

#include <memory>

#include "cli/model_arguments.h"
#include "cli/verbs.h"
#include "sparsight/ops/weight_type.h"

namespace sparsight::cli {

void add_export(CLI::App& app) {
  const auto arguments = std::make_shared<ExportArguments>();
  ExportRequest& request = arguments->request;
  CLI::App* verb =
      add_verb(app, "export", "Write a trained model as one file that runs without torch, and check its answers",
               "sparsight export runs/demo                                  (runs/demo/model.sparsight)\n"
               "sparsight export runs/demo --weights int8 --max-drop 0.3\n"
               "sparsight export runs/demo --weights auto --max-drop 0.3 --images 1000\n"
               "sparsight export runs/vit --weights int8 --smooth 0.5\n"
               "sparsight export runs/demo --weights bf16 --out demo.sparsight --split test --images 500\n"
               "sparsight export runs/demo --format onnx\n"
               "sparsight export vit_tiny.pth --no-compare --out vit_tiny.sparsight\n"
               "sparsight predict runs/demo/model.sparsight photo.jpg");
  verb->add_option("run", request.path, "Run folder, checkpoint, or weights in one file or several")
      ->required()
      ->type_name("RUN");
  verb->add_option("--format", request.format,
                   "Format of the file: sparsight (docs/deploy.md), or onnx for other runtimes")
      ->check(CLI::IsMember(export_formats()))
      ->capture_default_str();
  std::vector<std::string> types = weight_type_names();
  types.emplace_back("auto");
  verb->add_option("--weights", request.weights,
                   "Type of the matrices; auto: int8 step by step, where --max-drop (default: 0.3) allows it")
      ->check(CLI::IsMember(types))
      ->capture_default_str();
  verb->add_option("--out", request.out, "File to write (default: RUN/model[_TYPE].FORMAT, or beside the checkpoint)")
      ->type_name("FILE");
  verb->add_flag("--overwrite", request.replace, "Replace an existing file");
  add_comparison_options(*verb, "to compare the answers with those of fp32 on", request.split, request.images,
                         request.max_drop);
  verb->add_option("--smooth", request.smooth,
                   "Before rounding, move outlier channels from the activations of transformer blocks into the weights "
                   "(SmoothQuant); 0.5 shares them evenly")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("STRENGTH");
  verb->add_flag("!--no-compare", request.compares, "Do not read the dataset, and compare no answers");
  verb->add_option("--data", arguments->data, "Folder of the dataset (setting data.root)")->type_name("FOLDER");
  add_checkpoint_option(*verb, request.checkpoint);
  add_bare_weights_options(*verb, request.bare);
  add_overrides_option(*verb, request.overrides);
  verb->add_flag("--json", arguments->json, "Print the result as one JSON object");
  verb->callback([arguments] {
    const ExportRequest& asked = arguments->request;
    if (asked.max_drop && !asked.compares)
      throw CLI::ValidationError("--max-drop", "needs the comparison that --no-compare leaves out");
    run_export(*arguments);
  });
}

}  // namespace sparsight::cli
