// A CNN, a vision transformer and the same transformer with GMoE's layers, small enough for a CPU, and their training.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sparsight/core/options.h"

namespace sparsight::gmoe {

inline const char *const kSmallCnn = "CNN", *const kSmallVit = "ViT", *const kSmallMoe = "ViT-MoE";

struct SmallModels {
  std::vector<int64_t> cnn_widths = {16, 32, 64};
  int64_t width = 64, depth = 6, heads = 4, patch = 4;
  int64_t experts = 6;
  int64_t epochs = 10, batch = 64;
  double lr = 0.001;
  std::string precision = "fp32";
  void declare(OptionSet& set);
};

// All sections of a configuration but "data" and "run": `name` is one of the three above. The MoE layers of the last
// are in the last two even blocks (the fourth and second from the end), with the cosine router, as in the paper; depth
// is at least 4 for it, or UsageError. AdamW, half an epoch of warm-up, cosine.
Json small_model_sections(const std::string& name, const SmallModels& options);

}  // namespace sparsight::gmoe
