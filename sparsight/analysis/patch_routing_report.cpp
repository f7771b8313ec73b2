#include "sparsight/analysis/patch_routing_report.h"

#include <ATen/ops/zeros.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

at::Tensor as_plain(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.detach().to(at::kCPU, dtype).contiguous();
}

std::optional<double> share(int64_t part, int64_t whole) {
  if (whole <= 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

Json or_null(std::optional<double> value) { return value ? Json(*value) : Json(); }

void add_to(std::vector<int64_t>& sums, const std::vector<int64_t>& more) {
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
}

}  // namespace

std::optional<double> PatchRoutingReport::reached_share(int64_t label, int64_t expert) const {
  return share(reached.at(label * experts + expert), images.at(label));
}
std::optional<double> PatchRoutingReport::largest_share(int64_t label, int64_t expert) const {
  return share(largest.at(label * experts + expert), images.at(label));
}
std::optional<double> PatchRoutingReport::kept_share(int64_t label) const {
  return share(covered_relevant.at(label), relevant.at(label));
}
std::optional<double> PatchRoutingReport::dropped_irrelevant_share(int64_t label) const {
  const int64_t dropped = images.at(label) * patches - covered.at(label);
  return share(dropped - (relevant.at(label) - covered_relevant.at(label)), dropped);
}
std::optional<double> PatchRoutingReport::dropped_irrelevant_share(int64_t label, int64_t expert) const {
  const size_t at = static_cast<size_t>(label * experts + expert);
  const int64_t dropped = images.at(label) * patches - taken.at(at);
  return share(dropped - (relevant.at(label) - taken_relevant.at(at)), dropped);
}

int64_t PatchRoutingReport::best_expert(int64_t label) const {
  int64_t best = 0;
  for (int64_t e = 1; e < experts; ++e)
    if (largest.at(label * experts + e) > largest.at(label * experts + best)) best = e;
  return best;
}

void PatchRoutingReport::add(const PatchRoutingReport& other) {
  if (experts == 0) {
    *this = other;
    return;
  }
  if (layer != other.layer || experts != other.experts || classes != other.classes || patches != other.patches)
    fail("layer ", layer, " had ", experts, " experts, ", classes, " classes and ", patches, " patches, now layer ",
         other.layer, " has ", other.experts, ", ", other.classes, " and ", other.patches,
         "; routings of different models cannot be added up");
  for (const auto counts :
       {&PatchRoutingReport::images, &PatchRoutingReport::relevant, &PatchRoutingReport::covered,
        &PatchRoutingReport::covered_relevant, &PatchRoutingReport::taken, &PatchRoutingReport::taken_relevant,
        &PatchRoutingReport::reached, &PatchRoutingReport::largest})
    add_to(this->*counts, other.*counts);
}

// All counts 0.
static PatchRoutingReport empty_report(const Routing& routing, int64_t classes) {
  PatchRoutingReport report;
  report.layer = routing.layer;
  report.experts = routing.experts;
  report.classes = classes;
  report.patches = routing.layout.per_image - routing.layout.prefix;
  for (const auto counts : {&PatchRoutingReport::images, &PatchRoutingReport::relevant, &PatchRoutingReport::covered,
                            &PatchRoutingReport::covered_relevant})
    (report.*counts).assign(static_cast<size_t>(classes), 0);
  for (const auto counts : {&PatchRoutingReport::taken, &PatchRoutingReport::taken_relevant,
                            &PatchRoutingReport::reached, &PatchRoutingReport::largest})
    (report.*counts).assign(static_cast<size_t>(classes * routing.experts), 0);
  return report;
}

PatchRoutingReport patch_routing_report(const Routing& routing, const at::Tensor& labels, const at::Tensor& relevant,
                                        int64_t classes) {
  const TokenLayout& layout = routing.layout;
  const int64_t images = layout.images, patches = layout.per_image - layout.prefix, experts = routing.experts;
  SPARSIGHT_CHECK(labels.dim() == 1 && labels.size(0) == images);
  SPARSIGHT_CHECK(relevant.dim() == 2 && relevant.size(0) == images && relevant.size(1) == patches);
  PatchRoutingReport report = empty_report(routing, classes);
  const at::Tensor long_labels = as_plain(labels, at::kLong), matters = as_plain(relevant, at::kBool);
  const int64_t* const label = long_labels.const_data_ptr<int64_t>();
  const bool* const matter = matters.const_data_ptr<bool>();
  std::vector<char> counts(static_cast<size_t>(images), 0);
  for (int64_t b = 0; b < images; ++b) {
    int64_t found = 0;
    for (int64_t j = 0; j < patches; ++j) found += matter[b * patches + j];
    if (found == 0 || label[b] < 0 || label[b] >= classes) continue;
    counts[b] = 1;
    ++report.images[label[b]];
    report.relevant[label[b]] += found;
  }

  // For each image and expert: whether a relevant patch was taken, and the assignment with the largest gate.
  std::vector<char> covered(static_cast<size_t>(images * patches), 0),
      reached(static_cast<size_t>(images * experts), 0);
  std::vector<int64_t> largest(static_cast<size_t>(images * experts), -1);
  const at::Tensor tokens = as_plain(routing.token, at::kLong), chosen_by = as_plain(routing.expert, at::kLong),
                   gates = as_plain(routing.gate, at::kDouble), kept_here = as_plain(routing.kept, at::kBool);
  const int64_t *token = tokens.const_data_ptr<int64_t>(), *expert = chosen_by.const_data_ptr<int64_t>();
  const double* const gate = gates.const_data_ptr<double>();
  const bool* const kept = kept_here.const_data_ptr<bool>();
  const auto patch_index = [&](int64_t assignment) { return token[assignment] % layout.per_image - layout.prefix; };
  for (int64_t a = 0; a < tokens.numel(); ++a) {
    const int64_t b = token[a] / layout.per_image, j = patch_index(a);
    if (!kept[a] || j < 0 || !counts[b]) continue;
    const bool is_relevant = matter[b * patches + j];
    const int64_t at = label[b] * experts + expert[a], pair = b * experts + expert[a];
    covered[b * patches + j] = 1;
    ++report.taken[at];
    report.taken_relevant[at] += is_relevant;
    if (is_relevant) reached[pair] = 1;
    if (largest[pair] < 0 || gate[a] > gate[largest[pair]]) largest[pair] = a;
  }
  for (int64_t b = 0; b < images; ++b) {
    if (!counts[b]) continue;
    for (int64_t j = 0; j < patches; ++j) {
      report.covered[label[b]] += covered[b * patches + j];
      report.covered_relevant[label[b]] += covered[b * patches + j] && matter[b * patches + j];
    }
    for (int64_t e = 0; e < experts; ++e) {
      const int64_t pair = b * experts + e, at = label[b] * experts + e;
      report.reached[at] += reached[pair];
      report.largest[at] += largest[pair] >= 0 && matter[b * patches + patch_index(largest[pair])];
    }
  }
  return report;
}

at::Tensor patches_of_cells(const at::Tensor& cells, const std::vector<int64_t>& cell_grid, const TokenLayout& layout) {
  SPARSIGHT_CHECK(cell_grid.size() == 2 && cell_grid[0] > 0 && cell_grid[1] > 0);
  SPARSIGHT_CHECK(layout.grid_height > 0 && layout.grid_width > 0);
  const at::Tensor of_image = as_plain(cells, at::kLong);
  const int64_t *cell = of_image.const_data_ptr<int64_t>(), images = of_image.numel();
  const int64_t patches = layout.grid_height * layout.grid_width;
  at::Tensor found = at::zeros({images, patches}, at::kBool);
  bool* const out = found.data_ptr<bool>();
  // Along one axis: whether the patch's centre is in the cell, or the cell's centre in a patch that is larger.
  const auto meets = [](int64_t patch, int64_t patch_count, int64_t at, int64_t cell_count) {
    return patch_count >= cell_count ? (2 * patch + 1) * cell_count / (2 * patch_count) == at
                                     : (2 * at + 1) * patch_count / (2 * cell_count) == patch;
  };
  for (int64_t b = 0; b < images; ++b) {
    if (cell[b] < 0 || cell[b] >= cell_grid[0] * cell_grid[1]) continue;
    for (int64_t j = 0; j < patches; ++j)
      out[b * patches + j] = meets(j / layout.grid_width, layout.grid_height, cell[b] / cell_grid[1], cell_grid[0]) &&
                             meets(j % layout.grid_width, layout.grid_width, cell[b] % cell_grid[1], cell_grid[1]);
  }
  return found;
}

Json to_json(const PatchRoutingReport& report) {
  Json classes = Json::array();
  for (int64_t k = 0; k < report.classes; ++k) {
    Json reached = Json::array(), largest = Json::array(), dropped = Json::array();
    for (int64_t e = 0; e < report.experts; ++e) {
      reached.push_back(or_null(report.reached_share(k, e)));
      largest.push_back(or_null(report.largest_share(k, e)));
      dropped.push_back(or_null(report.dropped_irrelevant_share(k, e)));
    }
    classes.push_back({{"images", report.images[k]},
                       {"reached", reached},
                       {"largest", largest},
                       {"best_expert", report.best_expert(k)},
                       {"kept", or_null(report.kept_share(k))},
                       {"dropped_irrelevant", or_null(report.dropped_irrelevant_share(k))},
                       {"dropped_irrelevant_by_expert", dropped}});
  }
  return {{"layer", report.layer}, {"patches", report.patches}, {"classes", classes}};
}

}  // namespace sparsight
