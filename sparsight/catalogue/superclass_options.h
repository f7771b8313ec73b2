// Section [superclasses]: how the classes of the data are divided into super-classes. It is read when a training
// begins; checkpoints hold the division itself.
#pragma once

#include <string>

#include "sparsight/core/options.h"

namespace sparsight {

struct SuperclassOptions {
  std::string source = "data";
  std::string file;
  std::string sizes = "equal";
  int64_t seed = 0;
  void declare(OptionSet& set);
};

}  // namespace sparsight
