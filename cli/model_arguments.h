// Flags of the verbs that use a trained model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "sparsight/infer/bare_options.h"

namespace sparsight::cli {

// --checkpoint: `checkpoint` receives "best" or "last", or stays empty.
void add_checkpoint_option(CLI::App& verb, std::string& checkpoint);

// --routing and --save-routing: the routing file to use instead of the routers, and the one to write.
void add_routing_options(CLI::App& verb, std::string& routing, std::string& save_routing);

// --config, --normalize, --labels and --classes: what a file of weights alone does not say.
void add_bare_weights_options(CLI::App& verb, BareOptions& bare);

// --split, --images and --max-drop: the images on which the answers before and after a change of the model are
// compared, and how many points of top-1 accuracy it may lose. on: what the split is for, in the help of --split.
void add_comparison_options(CLI::App& verb, const std::string& on, std::string& split, int64_t& images,
                            std::optional<double>& max_drop);

// --pack-cache, for exported models.
void add_pack_cache_option(CLI::App& verb, bool& pack_cache);

// --set: `overrides` receives changes to the run's configuration.
void add_overrides_option(CLI::App& verb, std::vector<std::string>& overrides);

}  // namespace sparsight::cli
