#include "sparsight/report/charts/expert_map_chart.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/report/format.h"

namespace sparsight {
namespace {

constexpr size_t kMaxMapCells = 1 << 18;  // (row, expert) pairs of one chart
constexpr size_t kMaxMapExperts = 256;    // columns: more would be narrower than a pixel
constexpr size_t kMaxNameBytes = 256;     // every cell repeats it
constexpr double kMaxShownCount = 1e15;   // a damaged file has more

// Two rows may have the same name; then numbers keep them separate.
bool needs_numbers(const std::vector<std::string>& names) {
  return std::set<std::string>(names.begin(), names.end()).size() < names.size();
}

Json map_tooltip(const ExpertMapWords& words) {
  return Json::array({{{"field", "row"}, {"title", words.row}},
                      {{"field", "expert"}, {"title", "expert"}},
                      {{"field", "share"}, {"type", "quantitative"}, {"format", ".1%"}},
                      {{"field", "count"}, {"type", "quantitative"}, {"title", words.units}, {"format", ",d"}}});
}

// The columns in order, by number or by name.
Json map_columns(const ExpertMapWords& words) {
  Json x{{"field", "expert"}, {"type", "ordinal"}, {"axis", {{"labelAngle", 0}, {"labelOverlap", true}}}};
  if (words.experts.empty()) return x;
  x["sort"] = words.experts;
  x["axis"] = {{"labelAngle", -40}, {"labelLimit", 150}, {"labelOverlap", true}};
  return x;
}

Json map_spec(const Json& cells, const Json& order, const ExpertMapWords& words) {
  return {{"width", "container"},
          {"height", order.size() * (order.size() > 40 ? 9 : 18)},
          {"data", {{"values", cells}}},
          {"mark", {{"type", "rect"}}},
          {"encoding",
           {{"x", map_columns(words)},
            {"y",
             {{"field", "row"},
              {"type", "nominal"},
              {"sort", order},
              {"title", nullptr},
              {"axis", {{"labelOverlap", true}, {"labelFlush", false}, {"labelLimit", 110}}}}},
            {"color", share_color()},
            {"tooltip", map_tooltip(words)}}}};
}

// The sums of the columns of `counts`.
std::vector<double> column_sums(const Json& counts) {
  std::vector<double> sums;
  for (size_t k = 0; counts.is_array() && k < counts.size(); ++k) {
    const std::vector<double> row = numbers(counts[k]);
    sums.resize(std::max(sums.size(), row.size()));
    for (size_t e = 0; e < row.size(); ++e) sums[e] += row[e];
  }
  return sums;
}

// The columns that are shown, ascending: all, or those with the largest sums; of equal sums the first.
std::vector<size_t> shown_columns(const std::vector<double>& sums) {
  std::vector<size_t> columns(sums.size());
  std::iota(columns.begin(), columns.end(), size_t{0});
  if (columns.size() <= kMaxMapExperts) return columns;
  std::ranges::stable_sort(columns, [&](size_t a, size_t b) { return sums[a] > sums[b]; });
  columns.resize(kMaxMapExperts);
  std::ranges::sort(columns);
  return columns;
}

std::string columns_text(size_t shown, size_t all) {
  return shown == all ? "experts" : cat("the ", shown, " busiest of ", grouped(static_cast<int64_t>(all)), " experts");
}

}  // namespace

Chart expert_map_chart(const std::string& title, const Json& counts, const std::vector<std::string>& names,
                       const ExpertMapWords& words) {
  const bool numbered = words.numbered || needs_numbers(names);
  const std::vector<double> sums = column_sums(counts);
  const std::vector<size_t> columns = shown_columns(sums);
  Json cells = Json::array(), order = Json::array();
  double all = 0;
  for (size_t k = 0; counts.is_array() && k < counts.size() && cells.size() < kMaxMapCells; ++k) {
    const std::vector<double> row = numbers(counts[k]);
    double sum = 0;
    for (const double value : row) sum += value;
    if (sum <= 0) continue;
    all += sum;
    std::string name = std::to_string(k);
    if (k < names.size() && names[k].size() <= kMaxNameBytes) name = numbered ? name + " " + names[k] : names[k];
    order.push_back(name);
    for (const size_t e : columns) {
      if (e >= row.size()) continue;
      const Json expert = words.experts.size() == row.size() ? Json(words.experts[e]) : Json(e);
      cells.push_back({{"row", name}, {"expert", expert}, {"count", row[e]}, {"share", row[e] / sum}});
    }
  }
  Chart chart{title, "", Json()};
  if (cells.empty()) return chart;
  chart.note = cat("Rows: ", words.rows, ". Columns: ", columns_text(columns.size(), sums.size()),
                   ". Colours: shares of a row's ", words.units, ", ",
                   grouped(static_cast<int64_t>(std::min(all, kMaxShownCount))), " in all.");
  chart.spec = map_spec(cells, order, words);
  return chart;
}

}  // namespace sparsight
