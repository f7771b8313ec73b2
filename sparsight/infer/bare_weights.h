// A model from a file of weights alone, such as timm's and torchvision's: what the file does not say, how pixels are
// normalised, how many classes there are and which model it is, has to be given.
#pragma once

#include <string>
#include <vector>

#include "sparsight/infer/loaded_model.h"

namespace sparsight {

struct BareWeights {
  std::string path;                    // .safetensors, .pt or .pth
  std::string config;                  // a TOML file with [model], [data] and [transforms] eval
  std::vector<std::string> overrides;  // of the configuration
  std::string normalize;               // a preset of the transform `normalize`, "none", or MEAN:STD; "": not given
  int64_t classes = 0;                 // 0: not given
};

// Raises Error where there is nothing at `path`, the model that a command names.
void check_model_exists(const std::string& path);

// Whether the file is one of weights without the configuration that a checkpoint has.
bool is_bare_weights(const std::string& path);

// Raises UsageError naming the flag that gives what is missing: --config, --normalize, --classes. Raises Error where
// the weights do not fit the model, or their classes the dataset.
LoadedModel load_bare_weights(const BareWeights& bare);

// "imagenet", "none" (empty statistics), or "0.5:0.25", "0.4,0.5,0.6:0.2,0.2,0.3". Raises UsageError for others.
PixelStatistics parse_normalize(const std::string& text);

}  // namespace sparsight
