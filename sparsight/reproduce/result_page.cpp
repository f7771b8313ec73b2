#include "sparsight/reproduce/result_page.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/report/format.h"
#include "sparsight/report/html.h"
#include "sparsight/report/page.h"
#include "sparsight/reproduce/result_charts.h"
#include "sparsight/reproduce/result_text.h"
#include "sparsight/reproduce/results.h"

namespace sparsight {
namespace {

std::string text_table(const TextTable& table) {
  const auto kind = [&](size_t column) { return table.right[column] ? "n" : ""; };
  std::string header, rows;
  for (size_t c = 0; c < table.header.size(); ++c)
    header += std::string("<th class=\"") + kind(c) + "\">" + escape_html(table.header[c]) + "</th>";
  for (const auto& line : table.rows) {
    rows += "<tr>";
    for (size_t c = 0; c < line.size(); ++c) rows += html_cell(html_text(line[c]), kind(c));
    rows += "</tr>\n";
  }
  return html_table(header, rows);
}

// "2 of 3 claims hold, 1 cannot be said"
std::string verdict_summary(const std::vector<Claim>& claims) {
  const auto hold =
      std::count_if(claims.begin(), claims.end(), [](const Claim& claim) { return claim.holds.value_or(false); });
  const auto open = std::count_if(claims.begin(), claims.end(), [](const Claim& claim) { return !claim.holds; });
  return cat(hold, " of ", claims.size(), " hold", open > 0 ? cat(", ", open, " cannot be said") : "");
}

void add_pictures(Page& page, const std::vector<std::pair<std::string, std::string>>& pictures) {
  if (pictures.empty()) return;
  page.open_section("pictures", "Pictures", "", true);
  page.body += "<div class=\"routings\">\n";
  for (const auto& [caption, png] : pictures)
    page.body += "<figure class=\"routed\">" + html_image(png, caption) + "<figcaption>" + escape_html(caption) +
                 (png.empty() ? "<small>the file is missing</small>" : "") + "</figcaption></figure>\n";
  page.body += "</div>\n";
  page.close_section();
}

void add_list(Page& page, const std::string& id, const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  page.open_section(id, title, "", true);
  page.body += html_list(lines);
  page.close_section();
}

}  // namespace

std::string result_page(const FigureOutcome& outcome,
                        const std::vector<std::pair<std::string, std::string>>& pictures) {
  const Figure& figure = *outcome.figure;
  Page page;
  if (!outcome.claims.empty()) {
    page.open_section("claims", "Claims", verdict_summary(outcome.claims), true);
    page.body += text_table(claim_table(outcome.claims));
    page.close_section();
  }
  if (const auto charts = result_charts(outcome); !charts.empty()) {
    page.open_section("charts", "Charts", "", true);
    page.charts(charts);
    page.close_section();
  }
  add_pictures(page, pictures);
  page.open_section("table", "Table",
                    outcome.synthetic.empty() ? "beside the paper's numbers" : "of synthetic substitute data", true);
  page.body += text_table(result_table_of(outcome));
  if (const std::string note = deviation_note(outcome.table); !note.empty())
    page.body += "<p>" + escape_html(note) + ".</p>\n";
  page.close_section();
  std::vector<std::string> failures;
  for (const FailedJob& job : outcome.failed) failures.push_back(failure_text(job));
  add_list(page, "failed", "Jobs that failed", failures);
  add_list(page, "notes", "Notes", figure.notes);

  PageFrame frame;
  frame.title = figure.name + " - Sparsight";
  frame.heading = figure.name + ": " + figure.title;
  frame.subtitle =
      cat("scale ", scale_name(outcome.run.scale), ", computing time of all jobs ", duration(outcome.seconds));
  if (const std::string note = substitute_note(outcome); !note.empty())
    frame.notices = "<div class=\"notice\" id=\"synthetic\">" + escape_html(note) + ".</div>\n";
  if (!failures.empty())
    frame.notices += "<div class=\"notice\">" + std::to_string(failures.size()) + " jobs failed: see below.</div>\n";
  frame.footer =
      "Made by <code>sparsight reproduce</code>. The numbers: <code>result.csv</code> and "
      "<code>result.json</code> of the run folder.";
  return html_page(frame, page);
}

}  // namespace sparsight
