#include "sparsight/reproduce/image_error.h"

#include <algorithm>
#include <cmath>

namespace sparsight {
namespace {

constexpr double kAddedImages = 2;  // half of which succeed

double binomial_deviation(const ImageShare& share) {
  if (share.images <= 0) return 0;
  const double n = share.images + kAddedImages;
  const double p = (share.images * std::min(1.0, std::abs(share.percent) / 100) + kAddedImages / 2) / n;
  return 100 * std::sqrt(p * (1 - p) / n);
}

bool are_paired(const std::vector<WeightedShare>& terms) {
  return std::all_of(terms.begin(), terms.end(), [&](const WeightedShare& term) {
    return !term.share.outcomes.empty() && term.share.outcomes.size() == terms.front().share.outcomes.size();
  });
}

double paired_deviation(const std::vector<WeightedShare>& terms) {
  const size_t images = terms.front().share.outcomes.size();
  std::vector<double> sums(images);
  double added = 0, centre = 0;
  for (const auto& [weight, share] : terms) {
    added += kAddedImages * weight * weight / 4;
    for (size_t i = 0; i < images; ++i) sums[i] += weight * share.outcomes[i];
  }
  for (const double sum : sums) centre += sum / static_cast<double>(images);
  double squares = added;
  for (const double sum : sums) squares += (sum - centre) * (sum - centre);
  return 100 * std::sqrt(squares) / (static_cast<double>(images) + kAddedImages);
}

}  // namespace

std::vector<double> to_outcomes(const std::string& bits) {
  std::vector<double> outcomes;
  for (const char bit : bits) outcomes.push_back(bit == '1' ? 1 : 0);
  return outcomes;
}

double image_deviation(const std::vector<WeightedShare>& terms) {
  if (terms.empty()) return 0;
  if (are_paired(terms)) return paired_deviation(terms);
  double above = 0, below = 0;
  for (const auto& [weight, share] : terms) (weight > 0 ? above : below) += weight * binomial_deviation(share);
  return std::hypot(above, below);
}

double image_deviation(const ImageShare& share, const ImageShare& other) {
  return image_deviation({{1, share}, {-1, other}});
}

}  // namespace sparsight
