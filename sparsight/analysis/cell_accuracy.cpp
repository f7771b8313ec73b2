#include "sparsight/analysis/cell_accuracy.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace sparsight {

CellAccuracy::CellAccuracy(std::vector<std::string> classes, std::vector<std::string> domains)
    : classes_(std::move(classes)), domains_(std::move(domains)) {
  const size_t cells = classes_.size() * domains_.size();
  if (cells > static_cast<size_t>(kMaxCells)) return;
  images_.resize(cells);
  correct_.resize(cells);
}

void CellAccuracy::add(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& domains) {
  if (images_.empty()) return;
  const at::Tensor right = logits.argmax(1).eq(labels).to(at::kCPU, at::kLong).contiguous(),
                   cell = labels.mul(std::ssize(domains_)).add(domains).to(at::kCPU).contiguous();
  const int64_t* is_right = right.const_data_ptr<int64_t>();
  const int64_t* cells = cell.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < cell.size(0); ++i) {
    ++images_.at(static_cast<size_t>(cells[i]));
    correct_.at(static_cast<size_t>(cells[i])) += is_right[i];
  }
}

Json CellAccuracy::cells() const {
  if (images_.empty()) return nullptr;
  Json cells = Json::array();
  for (size_t i = 0; i < images_.size(); ++i)
    if (images_[i] > 0)
      cells.push_back({{"class", classes_[i / domains_.size()]},
                       {"domain", domains_[i % domains_.size()]},
                       {"images", images_[i]},
                       {"accuracy", static_cast<double>(correct_[i]) / static_cast<double>(images_[i])}});
  return cells;
}

Json worst_cell(const Json& cells) {
  if (!cells.is_array() || cells.empty()) return nullptr;
  double worst = 1;
  for (const Json& cell : cells) worst = std::min(worst, cell.at("accuracy").get<double>());
  return worst;
}

}  // namespace sparsight
