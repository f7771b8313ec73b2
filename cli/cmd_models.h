// `sparsight models`
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparsight::cli {

struct ModelsArguments {
  std::string name;  // of a model or of one of its published sizes; of show
  std::vector<int64_t> image = {3, 224, 224};
  int64_t classes = 1000;
  std::string format = "text";
};

void run_models_list(const ModelsArguments& arguments);
void run_models_show(const ModelsArguments& arguments);

}  // namespace sparsight::cli
