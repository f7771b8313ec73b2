#include "cli/model_arguments.h"

#include "cli/usage_error.h"

namespace sparsight::cli {

void add_checkpoint_option(CLI::App& verb, std::string& checkpoint) {
  verb.add_option("--checkpoint", checkpoint,
                  "Checkpoint of a run folder: best or last (default: best, if there is one)")
      ->check(CLI::IsMember({"best", "last"}));
}

void add_routing_options(CLI::App& verb, std::string& routing, std::string& save_routing) {
  verb.add_option("--routing", routing,
                  "Use the routing in this file (written by --save-routing) instead of the routers'")
      ->type_name("FILE");
  verb.add_option("--save-routing", save_routing, "Write the routing of all images to this file")->type_name("FILE");
}

void add_comparison_options(CLI::App& verb, const std::string& on, std::string& split, int64_t& images,
                            std::optional<double>& max_drop) {
  verb.add_option("--split", split, "Split " + on + ": train, val or test (default: val, else test)")
      ->check(CLI::IsMember({"train", "val", "test"}));
  verb.add_option("--images", images, "Number of its images, evenly spaced (default: all)")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->type_name("N");
  verb.add_option("--max-drop", max_drop, "Write nothing if the top-1 accuracy drops by more points than this")
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("POINTS");
}

void add_bare_weights_options(CLI::App& verb, BareOptions& bare) {
  constexpr int64_t kMaxClasses = 1'000'000'000;
  verb.add_option("--config", bare.config,
                  "Configuration for a file of weights alone, with [model] and [data] (default: the model that its "
                  "tensors tell)")
      ->type_name("FILE");
  verb.add_option("--normalize", bare.normalize,
                  "Pixel normalisation of such weights: imagenet, cifar10, half, ..., MEAN:STD or none")
      ->type_name("NAME");
  verb.add_option("--labels", bare.labels, "Class names of such weights: imagenet1k, or a file with one name a line")
      ->type_name("NAME");
  verb.add_option("--classes", bare.classes, "Number of classes of such weights, where their names do not say it")
      ->check(CLI::Range(int64_t{2}, kMaxClasses))
      ->type_name("N");
}

void add_pack_cache_option(CLI::App& verb, bool& pack_cache) {
  verb.add_flag("--pack-cache", pack_cache,
                "Keep the weights of an exported model, packed for this CPU, in a file beside it, which the next start "
                "maps");
}

void add_overrides_option(CLI::App& verb, std::vector<std::string>& overrides) {
  add_set_option(verb, overrides, "Override a setting of the run, including its model; may be repeated");
}

}  // namespace sparsight::cli
