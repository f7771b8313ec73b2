#include "sparsight/report/run/class_sections.h"

#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/report/charts/prediction_charts.h"
#include "sparsight/report/format.h"
#include "sparsight/report/html.h"
#include "sparsight/report/run/accuracy_cells.h"

namespace sparsight {
namespace {

std::string whole_text(std::optional<double> value) {
  return value && std::abs(*value) < 1e15 ? grouped(static_cast<int64_t>(*value)) : "-";
}

// "87.50 %" over a bar of that length.
std::string accuracy_cell(const Json& cell) {
  const auto accuracy = number(cell, "accuracy");
  if (!accuracy) return html_cell("-", "n");
  return html_cell(percent(accuracy) + "<div class=\"bar\"><i style=\"width:" +
                       fixed(100 * std::clamp(*accuracy, 0.0, 1.0), 1) + "%\"></i></div>",
                   "share");
}

constexpr size_t kMaxGridCells = 256;  // above this, the page lists only the worst
constexpr size_t kWorstOnPage = 50;    // this many

// One line for each of the worst combinations.
std::string worst_cell_table(const std::vector<Json>& cells) {
  std::string rows;
  for (const Json& cell : worst_cells(cells, kWorstOnPage))
    rows += "<tr>" + html_cell(html_text(text(cell, "class"))) + html_cell(html_text(text(cell, "domain"))) +
            html_cell(whole_text(number(cell, "images")), "n") + accuracy_cell(cell) + "</tr>\n";
  return html_table(cat("<th>Class (worst ", kWorstOnPage, " of ", cells.size(),
                        " combinations)</th><th>Domain</th><th class=\"n\">Images</th><th class=\"n\">Accuracy</th>"),
                    rows);
}

// One line for each class, with a column for each domain.
std::string cell_grid(const std::vector<Json>& cells, const std::vector<std::string>& domains) {
  std::string header = "<th>Class</th><th class=\"n\">Images</th>", rows;
  for (const std::string& domain : domains)
    header += "<th class=\"n\">" + (domains.size() > 1 ? html_text(domain) : "Accuracy") + "</th>";
  for (const std::string& name : distinct_strings(cells, "class")) {
    std::vector<Json> row(domains.size());
    double images = 0;
    for (const Json& cell : cells) {
      if (text(cell, "class") != name) continue;
      row[std::find(domains.begin(), domains.end(), text(cell, "domain")) - domains.begin()] = cell;
      images += number(cell, "images").value_or(0);
    }
    rows += "<tr>" + html_cell(html_text(name)) + html_cell(whole_text(images), "n");
    for (const Json& cell : row) rows += accuracy_cell(cell);
    rows += "</tr>\n";
  }
  return html_table(header, rows);
}

// "3 of 10", which opens its photos where there are any.
std::string confusion_images(const Json& pair, const Json& confused) {
  const std::string images = whole_text(number(pair, "images")) + " of " + whole_text(number(pair, "of"));
  for (size_t i = 0; i < confused.size(); ++i)
    if (text(confused[i], "true") == text(pair, "true") && text(confused[i], "predicted") == text(pair, "predicted"))
      return "<button type=\"button\" data-photos=\"" + std::to_string(i) + "\">" + images + "</button>";
  return images;
}

// The most frequent confusions; "" without any.
std::string confusion_table(const Json& eval, const Json& confused) {
  const Json& confusions = member(eval, "confusions");
  std::string rows;
  for (size_t i = 0; confusions.is_array() && i < std::min(kListedConfusionsOnPage, confusions.size()); ++i)
    rows += "<tr>" + html_cell(html_text(text(confusions[i], "true"))) +
            html_cell(html_text(text(confusions[i], "predicted"))) +
            html_cell(confusion_images(confusions[i], confused), "n") + "</tr>\n";
  if (rows.empty()) return "";
  return html_table("<th>Class</th><th>Most frequently taken for</th><th class=\"n\">Images</th>", rows);
}

}  // namespace

void add_classes(Page& page, const RunMetrics& log, const Json& confused) {
  const Json eval = final_eval(log, false);
  const std::vector<Json> cells = accuracy_cells(eval);
  if (cells.empty()) return;
  const std::vector<std::string> domains = distinct_strings(cells, "domain");
  const Json worst = worst_cells(cells, 1).front();
  page.open_section(
      "accuracy", "Classes",
      cat(part_of_eval(eval), ", step ", whole_text(number(eval, "step")), "; worst: ", text(worst, "class"),
          domains.size() > 1 ? ", " + text(worst, "domain") : "", " with ", percent(number(worst, "accuracy"))),
      true);
  page.body += cells.size() > kMaxGridCells ? worst_cell_table(cells) : cell_grid(cells, domains);
  page.body += confusion_table(eval, confused);
  page.charts(prediction_charts(eval, !confused.empty()));
  if (!confused.empty()) {
    page.body +=
        "<div class=\"photos\" id=\"photos\" tabindex=\"-1\" role=\"region\" aria-label=\"Confused images\" "
        "hidden></div>\n";
    page.photos = confused;
  }
  page.close_section();
}

}  // namespace sparsight
