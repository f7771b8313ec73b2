#include "cli/cmd_prune.h"

#include <memory>

#include "cli/model_arguments.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"

namespace sparsight::cli {
namespace {

void add_rules(CLI::App& verb, PruneRequest& request) {
  verb.add_flag("--unused", request.unused, "Remove the experts that no image of the split chose");
  verb.add_option("--keep", request.keep, "Keep so many experts of each layer: those with the largest load")
      ->check(CLI::Range(int64_t{1}, int64_t{65536}))
      ->type_name("N");
  verb.add_option(
          "--by", request.by,
          "What --keep goes by: load, or damage, the loss of the model without the expert (one evaluation each)")
      ->check(CLI::IsMember({"load", "damage"}))
      ->capture_default_str();
  verb.add_option("--below", request.below, "Remove the experts with a smaller share of their layer's choices, 0 to 1")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("SHARE");
  verb.add_option("--experts", request.experts, "Remove these: a layer and its experts; may be repeated")
      ->allow_extra_args(false)
      ->type_name("LAYER:E,...");
  verb.add_flag("--merge", request.merge,
                "Instead of removing an expert, merge it into the one with the most similar outputs");
}

}  // namespace

void add_prune(CLI::App& app) {
  const auto arguments = std::make_shared<PruneArguments>();
  PruneRequest& request = arguments->request;
  CLI::App* verb =
      add_verb(app, "prune", "Remove or merge experts of a trained model, and compare its answers with those before",
               "sparsight prune runs/demo --unused                           (prints, writes nothing)\n"
               "sparsight prune runs/demo --unused --out runs/pruned\n"
               "sparsight prune runs/demo --keep 6 --max-drop 0.5 --out runs/six\n"
               "sparsight prune runs/demo --keep 4 --merge --out runs/merged\n"
               "sparsight prune runs/demo --below 0.02 --split train --images 2000\n"
               "sparsight prune runs/demo --experts blocks.3.mlp:0,4 --each");
  verb->add_option("run", request.path, "Run folder or checkpoint")->required()->type_name("RUN");
  add_rules(*verb, request);
  verb->add_option("--out", request.out, "Run folder to write (default: none, only the comparison)")->type_name("DIR");
  verb->add_flag("--each", request.each, "Also measure the model without each single expert: one evaluation each");
  add_comparison_options(*verb, "to measure load and answers on", request.split, request.images, request.max_drop);
  verb->add_option("--data", arguments->data, "Folder of the dataset (setting data.root)")->type_name("FOLDER");
  add_checkpoint_option(*verb, request.checkpoint);
  add_set_option(*verb, request.overrides, "Override a setting of [data], [run] or [loader]; may be repeated");
  verb->add_flag("--json", arguments->json, "Print the result as one JSON object");
  verb->callback([arguments] { run_prune(*arguments); });
}

}  // namespace sparsight::cli
