#include "sparsight/core/nearest_name.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (optimal string alignment).
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

// Whether `part` is some of the words of `name` ("topk" of "softmax_topk").
bool has_words(const std::string& name, const std::string& part) {
  return !part.empty() && ("_" + name + "_").find("_" + part + "_") != std::string::npos;
}

bool goes_on(const std::string& longer, const std::string& shorter) {
  return !shorter.empty() && longer.starts_with(shorter + "_");
}

}  // namespace

std::string nearest_name(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  size_t best_distance = std::numeric_limits<size_t>::max();
  for (const std::string& name : names) {
    // Nobody mistypes a name of this length, and the distance takes quadratic time.
    if (std::max(word.size(), name.size()) > kMaxComparedName) continue;
    const size_t longest = std::max<size_t>(1, std::max(word.size(), name.size()) / 3);
    const size_t distance = edit_distance(word, name);
    if (distance <= longest && distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  if (!best.empty()) return best;
  const auto found =
      std::ranges::find_if(names, [&](const std::string& name) { return goes_on(name, word) || goes_on(word, name); });
  if (found != names.end()) return *found;
  const auto longer = std::ranges::find_if(names, [&](const std::string& name) { return has_words(name, word); });
  return longer == names.end() ? "" : *longer;
}

std::string did_you_mean(const std::string& name) {
  return name.empty() ? "" : "; did you mean \"" + printable(name) + "\"?";
}

std::string suggestion(const std::string& word, const std::vector<std::string>& names) {
  return did_you_mean(nearest_name(word, names)) + " (known: " + printable(join(names)) + ")";
}

size_t find_position(const std::string& name, const std::vector<std::string>& names, const std::string& what) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) fail_usage("unknown ", what, " \"", printable(name), "\"", suggestion(name, names));
  return static_cast<size_t>(found - names.begin());
}

std::string join(const std::vector<std::string>& names, const std::string& separator) {
  std::string joined;
  for (const std::string& name : names) {
    if (!joined.empty()) joined += separator;
    joined += name;
  }
  return joined;
}

}  // namespace sparsight
