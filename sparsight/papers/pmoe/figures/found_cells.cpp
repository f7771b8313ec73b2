#include "sparsight/papers/pmoe/figures/found_cells.h"

#include "sparsight/core/error.h"

namespace sparsight::pmoe {

PatchRoutingReport found_cells(PatchCnn& model, const PatchSet& data) {
  constexpr int64_t kChunk = 256;
  if (!model.parts().router) fail("found_cells needs a network with a router; this one processes every patch");
  PatchRoutingReport report;
  for (int64_t first = 0; first < data.size(); first += kChunk) {
    const int64_t count = std::min(kChunk, data.size() - first);
    const at::Tensor position = data.position.narrow(0, first, count).unsqueeze(1);
    report.add(patch_routing_report(route_patches(model, data, first, count), data.labels.narrow(0, first, count),
                                    at::arange(data.patches, at::kLong).unsqueeze(0) == position, data.classes));
  }
  return report;
}

double found_by_right_expert(PatchCnn& model, const PatchSet& data) {
  const PatchRoutingReport report = found_cells(model, data);
  double reached = 0, images = 0;
  for (int64_t label = 0; label < report.classes; ++label) {
    reached += static_cast<double>(report.reached[label * report.experts + label]);  // expert e is that of class e
    images += static_cast<double>(report.images[label]);
  }
  return 100 * reached / images;
}

}  // namespace sparsight::pmoe
