#include "cli/model_arguments.h"

namespace sparsight::cli {

void add_weights_option(CLI::App& verb, std::string& weights) {
  verb.add_option("--weights,--checkpoint", weights,
                  "Checkpoint of a run folder: best or last (default: best, if there is one)")
      ->check(CLI::IsMember({"best", "last"}));
}

void add_overrides_option(CLI::App& verb, std::vector<std::string>& overrides) {
  verb.add_option("--set", overrides, "Override a setting of the run, also of its model; may be repeated")
      ->type_name("SECTION.KEY=VALUE")
      ->allow_extra_args(false);
}

}  // namespace sparsight::cli
