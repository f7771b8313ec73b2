#include "cli/cmd_eval.h"

#include <memory>

#include "cli/model_arguments.h"
#include "cli/verbs.h"

namespace sparsight::cli {
namespace {

void add_corruption_options(CLI::App& verb, EvalArguments& arguments) {
  verb.add_option("--corrupt", arguments.corruptions.kinds,
                  "Evaluate on the corruptions of ImageNet-C too: all, or names separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("KINDS");
  verb.add_option("--severity", arguments.corruptions.severities, "Severities of --corrupt, 1 to 5 (default: all)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N")
      ->needs("--corrupt");
}

}  // namespace

void add_eval(CLI::App& app) {
  const auto arguments = std::make_shared<EvalArguments>();
  CLI::App* verb = add_verb(app, "eval", "Evaluate a trained model: accuracy, loss and expert load",
                            "sparsight eval runs/demo\n"
                            "sparsight eval runs/demo --split val --checkpoint last --json\n"
                            "sparsight eval runs/demo --weights int8\n"
                            "sparsight eval runs/demo --records runs/demo/records\n"
                            "sparsight eval runs/demo --confused\n"
                            "sparsight eval runs/demo --set router.eval_k=1\n"
                            "sparsight eval resnet50.pth --data imagenet/ --split val\n"
                            "sparsight eval runs/demo --corrupt all\n"
                            "sparsight eval runs/demo --corrupt fog,snow --severity 3\n"
                            "sparsight eval runs/demo --set data.test_domains='[\"sketch\"]'");
  verb->alias("val");
  verb->add_option("run", arguments->options.path,
                   "Run folder, checkpoint, exported model, or weights in one file or several")
      ->required()
      ->type_name("RUN");
  verb->add_option("--split", arguments->options.split, "Split of the dataset: train, val or test (default: test)")
      ->check(CLI::IsMember({"train", "val", "test"}));
  add_checkpoint_option(*verb, arguments->options.checkpoint);
  add_weights_option(*verb, arguments->options.weights);
  verb->add_option("--records", arguments->options.records,
                   "Folder to write one record per image into: id, class, prediction, logits, experts")
      ->type_name("FOLDER");
  verb->add_flag("--flip", arguments->options.flip,
                 "Test-time augmentation: average the logits of each image and of its mirror image");
  add_corruption_options(*verb, *arguments);
  verb->add_flag("--confused", arguments->options.confused,
                 "Write the images that are taken for another class into the run folder, for its report")
      ->excludes("--corrupt");
  add_routing_options(*verb, arguments->options.routing, arguments->options.save_routing);
  verb->add_option("--data", arguments->data, "Folder of the dataset (setting data.root)")->type_name("FOLDER");
  add_bare_weights_options(*verb, arguments->options.bare);
  add_pack_cache_option(*verb, arguments->options.pack_cache);
  add_overrides_option(*verb, arguments->options.overrides);
  verb->add_flag("--json", arguments->json, "Print the result as one JSON object");
  arguments->launch.declare(*verb,
                            "Evaluate with so many processes on this machine, which share the images: the same "
                            "result");
  verb->callback([arguments] { run_eval(*arguments); });
}

}  // namespace sparsight::cli
