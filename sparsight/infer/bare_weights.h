// A model from a file of weights alone, such as timm's and torchvision's. Names and shapes of the tensors tell the
// model (derived_model.h), or a configuration does; how pixels are normalised, and what classes are called, has to be
// given.
#pragma once

#include <string>
#include <vector>

#include "sparsight/infer/bare_options.h"
#include "sparsight/infer/loaded_model.h"

namespace sparsight {

// The model that a command names.
struct ModelRequest {
  std::string path;                         // a run folder, a checkpoint, or weights alone, in one file or several
  std::string checkpoint = {};              // `which` of load_model()
  std::vector<std::string> overrides = {};  // of the configuration
  BareOptions bare = {};                    // for weights alone
  bool needs_data = true;                   // whether the command reads [data]; else weights alone need none
  bool pack_cache = false;                  // of load_frozen_model()
};

// Whether the file, or the folder of several (io/sharded_weights.h), is one of weights without the configuration that a
// checkpoint has. The content decides, not the name. Raises Error for a file that is none of both.
bool is_bare_weights(const std::string& path);

// load_model() or load_bare_weights(), whichever the path is for. Raises Error where there is nothing at the path, and
// UsageError for options that are for weights alone where the path is a run or a checkpoint.
LoadedModel load_model_or_weights(const ModelRequest& request);

// Raises UsageError naming the flag that gives what is missing: --config, --normalize, --classes, the dataset. Raises
// Error where the weights do not fit the model, or their classes the dataset or the labels. A warning says which
// normalisation is taken where nothing tells it.
LoadedModel load_bare_weights(const ModelRequest& request);

// The names of classes: "imagenet1k", or the lines of a file. Raises Error for a file that cannot be read or is empty.
std::vector<std::string> read_labels(const std::string& name);

// "imagenet", "none" (empty statistics), or "0.5:0.25", "0.4,0.5,0.6:0.2,0.2,0.3". Raises UsageError for others.
PixelStatistics parse_normalize(const std::string& text);

}  // namespace sparsight
