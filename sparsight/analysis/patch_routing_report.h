// For datasets whose relevant patches are known: how often experts take relevant patches, and how many irrelevant ones
// they drop. The measures of Chowdhury et al. 2023, "Patch-level Routing in Mixture-of-Experts is Provably
// Sample-efficient for Convolutional Neural Networks", figures 8 and 9. Relevant may be the patch that determines the
// label, or one that is only correlated with it. Letters: moe/axes.md; K classes, P patches of an image.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

// Counts, so that the reports of batches can be added up. Prefix tokens are not counted.
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

  // Fractions from 0 to 1; nothing if there is nothing to count.
  std::optional<double> reached_share(int64_t label, int64_t expert) const;
  std::optional<double> largest_share(int64_t label, int64_t expert) const;  // figure 9
  std::optional<double> kept_share(int64_t label) const;                     // relevant patches that some expert took
  std::optional<double> dropped_irrelevant_share(int64_t label) const;  // irrelevant among patches that no expert took
  std::optional<double> dropped_irrelevant_share(int64_t label, int64_t expert) const;  // ... that `expert` left
  int64_t best_expert(int64_t label) const;  // with the highest largest_share; the first of equals

  // Raises Error for a report of another layer or shape. An empty report plus a report is that report.
  void add(const PatchRoutingReport& other);
};

// labels: [B] int64; images with a label outside 0..classes-1, or without a relevant patch, are not counted. relevant:
// [B,P] bool. Of equal gates (all of them with gate "ones") the expert's first choice counts as the largest.
PatchRoutingReport patch_routing_report(const Routing& routing, const at::Tensor& labels, const at::Tensor& relevant,
                                        int64_t classes);

// cells: [B], cell numbers in a grid of cell_grid = [rows, columns], row by row; values outside mean no cell. Returns
// [B,P] bool: the patches whose centre is in the image's cell; if patches are larger than cells, the one around it.
at::Tensor patches_of_cells(const at::Tensor& cells, const std::vector<int64_t>& cell_grid, const TokenLayout& layout);

// {"layer", "patches", "classes": [{"images", "reached": [E], "largest": [E], "best_expert", "kept",
// "dropped_irrelevant", "dropped_irrelevant_by_expert": [E]}, ...]}: fractions, null if there is nothing to count.
Json to_json(const PatchRoutingReport& report);

}  // namespace sparsight
