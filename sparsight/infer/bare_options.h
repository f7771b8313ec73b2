// What may be said about a file of weights alone, as timm's and torchvision's, on a command line.
#pragma once

#include <cstdint>
#include <string>

namespace sparsight {

struct BareOptions {
  std::string config;     // a TOML file with [model], [data] and [transforms] eval; "": the model that the tensors tell
  std::string normalize;  // a preset of the transform `normalize`, "none", or MEAN:STD; "": not given
  std::string labels;     // class names: "imagenet1k", or a file with one a line; "": not given
  int64_t classes = 0;    // 0: not given

  bool operator==(const BareOptions&) const = default;
};

}  // namespace sparsight
