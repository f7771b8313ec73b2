#include "sparsight/analysis/cell_accuracy.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace sparsight {

CellAccuracy::CellAccuracy(std::vector<std::string> classes, std::vector<std::string> domains)
    : classes_(std::move(classes)), domains_(std::move(domains)) {}

void CellAccuracy::add(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& domains) {
  const at::Tensor right = logits.argmax(1).eq(labels).to(at::kCPU, at::kLong).contiguous(),
                   cell = labels.mul(std::ssize(domains_)).add(domains).to(at::kCPU).contiguous();
  const int64_t* is_right = right.const_data_ptr<int64_t>();
  const int64_t* cells = cell.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < cell.size(0); ++i) {
    Counts& counts = counts_[cells[i]];
    ++counts.images;
    counts.correct += is_right[i];
  }
}

Json CellAccuracy::cells() const {
  Json cells = Json::array();
  for (const auto& [cell, counts] : counts_)
    cells.push_back({{"class", classes_.at(static_cast<size_t>(cell) / domains_.size())},
                     {"domain", domains_[static_cast<size_t>(cell) % domains_.size()]},
                     {"images", counts.images},
                     {"accuracy", static_cast<double>(counts.correct) / static_cast<double>(counts.images)}});
  return cells;
}

Json worst_cell(const Json& cells) {
  if (!cells.is_array() || cells.empty()) return nullptr;
  double worst = 1;
  for (const Json& cell : cells) worst = std::min(worst, cell.at("accuracy").get<double>());
  return worst;
}

}  // namespace sparsight
