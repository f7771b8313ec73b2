// Where it is known which patches of an image matter: how often experts take those, and how much they leave out that
// does not. The measures of Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably
// Sample-efficient for Convolutional Neural Networks", figures 8 and 9. What matters may be the patch that makes the
// label, or one that only goes with it (a spurious feature). Letters: moe/axes.md; K classes, P patches of an image.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

// Counts, so that the reports of batches can be added up. Prefix tokens count in nothing.
struct PatchRoutingReport {
  std::string layer;
  int64_t experts = 0, classes = 0, patches = 0;  // E, K, P
  std::vector<int64_t> images;                    // [K] that have a relevant patch
  std::vector<int64_t> relevant;                  // [K] relevant patches
  std::vector<int64_t> covered;                   // [K] patches that some expert took
  std::vector<int64_t> covered_relevant;          // [K] of these, relevant
  std::vector<int64_t> taken;                     // [K,E] patches that the expert took
  std::vector<int64_t> taken_relevant;            // [K,E] of these, relevant
  std::vector<int64_t> reached;                   // [K,E] images of which the expert took a relevant patch
  std::vector<int64_t> largest;                   // [K,E] images of which its patch with the largest gate is relevant

  // Shares of 0 to 1; nothing where there is nothing to count.
  std::optional<double> reached_share(int64_t label, int64_t expert) const;
  std::optional<double> largest_share(int64_t label, int64_t expert) const;  // figure 9
  std::optional<double> kept_share(int64_t label) const;                // of relevant patches: some expert took them
  std::optional<double> dropped_irrelevant_share(int64_t label) const;  // of patches that no expert took: irrelevant
  std::optional<double> dropped_irrelevant_share(int64_t label, int64_t expert) const;  // of those that this one left
  int64_t best_expert(int64_t label) const;  // with the highest largest_share, the first of equals

  // Raises Error for a report of another layer or shape. The sum of nothing and a report is that report.
  void add(const PatchRoutingReport& other);
};

// labels: [B] int64; images with a label outside 0..classes-1, or without a relevant patch, count in nothing. relevant:
// [B,P] bool. Of equal gates (all of them with gate "ones") the expert's first choice counts as the largest.
PatchRoutingReport patch_routing_report(const Routing& routing, const at::Tensor& labels, const at::Tensor& relevant,
                                        int64_t classes);

// cells: [B], places on a grid of cell_grid = [rows, columns], row by row; others are no place. Returns [B,P] bool: the
// patches whose middle lies in the image's cell. Where patches are larger than cells, the one that the cell lies in.
at::Tensor patches_of_cells(const at::Tensor& cells, const std::vector<int64_t>& cell_grid, const TokenLayout& layout);

// {"layer", "patches", "classes": [{"images", "reached": [E], "largest": [E], "best_expert", "kept",
// "dropped_irrelevant", "dropped_irrelevant_by_expert": [E]}, ...]}: shares, null where there is nothing to count.
Json to_json(const PatchRoutingReport& report);

}  // namespace sparsight
