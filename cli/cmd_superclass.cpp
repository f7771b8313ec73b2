#include "cli/cmd_superclass.h"

#include <algorithm>
#include <memory>

#include "cli/catalogue.h"
#include "cli/model_arguments.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"

namespace sparsight::cli {
namespace {

constexpr int64_t kMaxClasses = 5000;
const std::vector<std::string> kConfusionNames = {"hard", "soft", "top5", "oof"};

void add_search_options(CLI::App& verb, SuperclassSearchArguments& search, const std::string& experts_help,
                        const std::string& confusion_help) {
  verb.add_option("--experts", search.experts, experts_help)
      ->check(CLI::Range(int64_t{1}, kMaxClasses))
      ->type_name("E");
  verb.add_option("--confusion", search.confusion, confusion_help)->capture_default_str()->type_name("KIND");
  verb.add_option("--folds", search.folds, "Models of --confusion oof; each is trained without one fold of the images")
      ->check(CLI::Range(int64_t{2}, int64_t{1000}))
      ->capture_default_str()
      ->type_name("F");
  verb.add_option("--method", search.method, "One of " + component_names("clustering"))
      ->capture_default_str()
      ->type_name("NAME");
  verb.add_option(
          "--tau", search.tau,
          "Share of the mean affinity that is added to every pair of classes, which keeps classes attached that "
          "are never confused")
      ->capture_default_str()
      ->type_name("X");
  verb.add_option("--min-size", search.min_size, "Classes that each super-class has at least")
      ->check(CLI::Range(int64_t{1}, kMaxClasses))
      ->capture_default_str()
      ->type_name("N");
  verb.add_option("--groups", search.groups,
                  "A given division to merge or split into E: a map file, or data for the dataset's own")
      ->type_name("data|MAP.txt");
}

void check_confusion_name(const std::string& name) { find_position(name, kConfusionNames, "confusion"); }

void check_superclass(const SuperclassArguments& arguments) {
  const SuperclassSearchArguments& search = arguments.search;
  if (search.experts == 0)
    fail_usage("superclass needs --experts E: how many super-classes to find, one for each expert of the router");
  if (!arguments.run.empty()) {
    check_confusion_name(search.confusion);
    return;
  }
  if (std::ranges::find(kConfusionNames, search.confusion) != kConfusionNames.end())
    fail_usage(
        "superclass needs a dense run to count confusions of, for example runs/dense, or counts: --confusion "
        "COUNTS.npy");
  if (arguments.out.empty()) fail_usage("superclass --confusion ", search.confusion, " needs --out MAP.txt");
  if (search.groups == "data")
    fail_usage("--groups data needs a run, whose dataset has the division; name a map file with --groups");
}

void add_superclass_train(CLI::App& app) {
  const auto arguments = std::make_shared<SuperclassTrainArguments>();
  CLI::App* verb =
      add_verb(app, "train",
               "Train a dense model, find super-classes in its confusions, and train the routed model with "
               "them; the same command goes on after a stop",
               "sparsight superclass train configs/whole_images.toml --out runs/whole\n"
               "sparsight superclass train configs/whole_images.toml --experts 3 --confusion soft --out "
               "runs/three");
  arguments->config.declare(verb);
  add_search_options(*verb, arguments->search,
                     "Number of super-classes and experts (default: moe.experts of the configuration)",
                     "What is counted: hard, soft, top5 (of the held-out images), oof (out-of-fold)");
  verb->add_option("--out", arguments->out, "Folder of the stages: dense, superclasses, moe")
      ->required()
      ->type_name("DIR");
  verb->callback([arguments] {
    if (arguments->config.file.empty())
      fail_usage("superclass train needs the configuration of a routed model, for example configs/whole_images.toml");
    check_confusion_name(arguments->search.confusion);
    run_superclass_train(*arguments);
  });
}

void add_superclass_compare(CLI::App& app) {
  const auto arguments = std::make_shared<SuperclassCompareArguments>();
  CLI::App* verb = add_verb(app, "compare",
                            "How alike two maps are: the adjusted Rand index, 1 for the same division, about 0 for "
                            "unrelated ones",
                            "sparsight superclass compare seed0.txt seed1.txt");
  verb->add_option("first", arguments->first, "A map: one integer per line")->required()->type_name("A.txt");
  verb->add_option("second", arguments->second, "Another map of the same classes")->required()->type_name("B.txt");
  verb->callback([arguments] { run_superclass_compare(*arguments); });
}

}  // namespace

void add_superclass(CLI::App& app) {
  const auto arguments = std::make_shared<SuperclassArguments>();
  CLI::App* verb = add_verb(app, "superclass",
                            "Find super-classes, one for each expert of a router that decides per image: classes that "
                            "a dense model confuses form a super-class",
                            "sparsight superclass runs/dense --experts 4\n"
                            "sparsight superclass runs/dense --experts 4 --confusion oof --folds 5\n"
                            "sparsight superclass --confusion counts.npy --experts 4 --out map.txt\n"
                            "sparsight superclass train configs/whole_images.toml --out runs/whole\n"
                            "sparsight superclass compare map.txt runs/dense/superclasses/map.txt");
  verb->add_option("run", arguments->run,
                   "Run folder of a dense model; the files go into RUN/superclasses, the map is map.txt there")
      ->type_name("RUN");
  add_search_options(*verb, arguments->search, "Number of super-classes: that of the experts",
                     "What is counted of RUN: hard, soft, top5 (of held-out images), oof (out-of-fold); or a .npy file "
                     "of counts [true class, predicted class]");
  verb->add_option("--split", arguments->split, "Split to count on; only the validation split can be held out")
      ->check(CLI::IsMember({"train", "val", "test"}))
      ->capture_default_str();
  add_checkpoint_option(*verb, arguments->checkpoint);
  verb->add_option("--out", arguments->out, "Also write the map to this file: one integer per line")
      ->type_name("MAP.txt");
  add_set_option(*verb, arguments->overrides, "Override data.root, run.threads or a setting of [loader]");
  verb->add_flag("--json", arguments->json, "Print the report as one JSON object");
  verb->require_subcommand(0, 1);
  add_superclass_train(*verb);
  add_superclass_compare(*verb);
  verb->callback([arguments, verb] {
    if (!verb->get_subcommands().empty()) return;
    check_superclass(*arguments);
    run_superclass(*arguments);
  });
}

}  // namespace sparsight::cli
