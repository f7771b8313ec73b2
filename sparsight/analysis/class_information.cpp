#include "sparsight/analysis/class_information.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include "sparsight/core/random.h"

namespace sparsight {
namespace {

constexpr int64_t kPermutations = 20;

std::vector<int64_t> permuted(std::vector<int64_t> labels, uint64_t permutation) {
  RandomStream random(0, "class_information.shuffle", permutation);
  for (int64_t i = std::ssize(labels) - 1; i > 0; --i) std::swap(labels[i], labels[random.below(i + 1)]);
  return labels;
}

}  // namespace

void ImageExperts::add(int64_t label, const std::vector<int64_t>& counts) {
  const auto sum = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  if (sum <= 0) return;
  for (size_t e = 0; e < counts.size(); ++e)
    if (counts[e] > 0)
      shares_.push_back({static_cast<int32_t>(e), static_cast<float>(static_cast<double>(counts[e]) / sum)});
  labels_.push_back(label);
  ends_.push_back(std::ssize(shares_));
}

std::vector<double> ImageExperts::table(const std::vector<int64_t>& labels, int64_t classes, int64_t experts) const {
  std::vector<double> sums(static_cast<size_t>(classes * experts));
  int64_t a = 0;
  for (size_t i = 0; i < ends_.size(); ++i)
    for (; a < ends_[i]; ++a) sums[labels[i] * experts + shares_[a].expert] += shares_[a].share;
  return sums;
}

double mutual_information_bits(const std::vector<double>& joint, int64_t classes, int64_t experts) {
  std::vector<double> of_class(static_cast<size_t>(classes)), of_expert(static_cast<size_t>(experts));
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k)
    for (int64_t e = 0; e < experts; ++e) {
      const double weight = joint[k * experts + e];
      of_class[k] += weight;
      of_expert[e] += weight;
      sum += weight;
    }
  double bits = 0;
  for (int64_t k = 0; k < classes; ++k)
    for (int64_t e = 0; e < experts; ++e)
      if (const double weight = joint[k * experts + e]; weight > 0)
        bits += weight / sum * std::log2(weight * sum / (of_class[k] * of_expert[e]));
  return std::max(0.0, bits);  // rounding may give -1e-17
}

ClassInformation class_information(const ImageExperts& images, int64_t classes, int64_t experts) {
  ClassInformation result;
  result.images = images.images();
  if (result.images == 0) return result;
  const auto measure_bits = [&](const std::vector<int64_t>& labels) {
    return mutual_information_bits(images.table(labels, classes, experts), classes, experts);
  };
  result.bits = measure_bits(images.labels());
  double sum = 0, squares = 0;
  for (int64_t p = 0; p < kPermutations; ++p) {
    const double bits = measure_bits(permuted(images.labels(), static_cast<uint64_t>(p)));
    sum += bits;
    squares += bits * bits;
  }
  result.shuffled = sum / kPermutations;
  result.shuffled_deviation =
      std::sqrt(std::max(0.0, squares - kPermutations * result.shuffled * result.shuffled) / (kPermutations - 1));
  std::vector<int64_t> present = images.labels();
  std::sort(present.begin(), present.end());
  const int64_t distinct = std::unique(present.begin(), present.end()) - present.begin();
  result.maximum = std::log2(static_cast<double>(std::min(distinct, experts)));
  return result;
}

Json to_json(const ClassInformation& information) {
  return {{"bits", information.bits},
          {"shuffled", information.shuffled},
          {"shuffled_deviation", information.shuffled_deviation},
          {"maximum", information.maximum},
          {"images", information.images}};
}

}  // namespace sparsight
