#include "sparsight/models/dense_layers.h"

#include "sparsight/core/block_list.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

struct DenseLayerOptions {
  std::vector<int64_t> blocks;
  int64_t hidden = 0;
  void declare(OptionSet& set) {
    set.integers("blocks", &blocks, {-1000, 999}, "blocks of the model; negative numbers count from the end");
    set.integer("hidden", &hidden, {1, 1 << 20}, "hidden width of their MLPs");
  }
};

DenseLayerOptions read_dense_layer(const Json& entry) {
  DenseLayerOptions options;
  OptionSet set;
  options.declare(set);
  assign(set, entry, "model.layer");
  for (const char* key : {"blocks", "hidden"})
    if (!entry.contains(key))
      fail_usage("an entry of model.layer needs ", key, ", as in {blocks = [-2, -1], hidden = 1536}; got ",
                 shown(entry));
  return options;
}

}  // namespace

std::vector<int64_t> hidden_of_blocks(const Json& layers, int64_t depth, int64_t hidden) {
  std::vector<int64_t> widths;
  std::vector<std::vector<int64_t>> lists;
  for (const Json& entry : layers) {
    const DenseLayerOptions options = read_dense_layer(entry);
    lists.push_back(options.blocks);
    widths.push_back(options.hidden);
  }
  std::vector<int64_t> of_blocks;
  for (const int64_t list : list_of_each_block(lists, depth, "[[model.layer]]"))
    of_blocks.push_back(list < 0 ? hidden : widths[static_cast<size_t>(list)]);
  return of_blocks;
}

}  // namespace sparsight
