#include "sparsight/report/page.h"

#include "sparsight/report/assets.h"
#include "sparsight/report/html.h"

namespace sparsight {
namespace {

// Removes the reference to a source map, which is not included.
std::string script(std::string_view source) {
  return "<script>" + std::string(source.substr(0, source.rfind("//# sourceMappingURL="))) + "</script>\n";
}

}  // namespace

void Page::open_section(const std::string& id, const std::string& title, const std::string& detail, bool open) {
  contents += "<a href=\"#" + id + "\">" + title + "</a>";
  body += "<details id=\"" + id + "\"" + (open ? " open" : "") + "><summary>" + title +
          (detail.empty() ? "" : "<small>" + escape_html(detail) + "</small>") + "</summary>\n";
}

void Page::close_section() { body += "</details>\n"; }

void Page::charts(const std::vector<Chart>& charts) {
  if (charts.empty()) return;
  body += "<div class=\"charts\">\n";
  for (const Chart& chart : charts) {
    body += "<figure><figcaption>" + escape_html(chart.title) + "<small>" + escape_html(chart.note) +
            "</small></figcaption><div class=\"chart\" data-chart=\"" + std::to_string(specs.size()) +
            "\"></div></figure>\n";
    specs.push_back(chart.spec);
  }
  body += "</div>\n";
}

std::string html_text(const std::string& text) { return text.empty() ? "-" : escape_html(text); }

std::string html_cell(const std::string& html, const char* kind) {
  return std::string("<td") + (*kind ? std::string(" class=\"") + kind + "\"" : "") + ">" + html + "</td>";
}

std::string html_table(const std::string& header, const std::string& rows) {
  return "<div class=\"scroll\"><table><thead><tr>" + header + "</tr></thead><tbody>\n" + rows +
         "</tbody></table></div>\n";
}

std::string html_rows(const Rows& rows) {
  if (rows.empty()) return "";
  std::string header, body;
  for (const std::string& title : rows.front()) header += "<th>" + escape_html(title) + "</th>";
  for (size_t i = 1; i < rows.size(); ++i) {
    body += "<tr>";
    for (const std::string& value : rows[i]) body += html_cell(html_text(value));
    body += "</tr>\n";
  }
  return html_table(header, body);
}

std::string html_list(const std::vector<std::string>& lines) {
  std::string html = "<ul>";
  for (const std::string& line : lines) html += "<li>" + escape_html(line) + "</li>";
  return html + "</ul>";
}

std::string html_image(const std::string& png, const std::string& description) {
  return png.empty() ? "" : "<img alt=\"" + escape_html(description) + "\" src=\"" + data_uri("image/png", png) + "\">";
}

std::string html_page(const PageFrame& frame, const Page& page) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; "
      "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>";
  html += escape_html(frame.title) + "</title>\n<style>" + std::string(assets::page_style()) + "</style>\n" +
          script(assets::page_watch()) + "</head>\n<body>\n<main>\n<header><h1>" + escape_html(frame.heading) +
          "</h1><p>" + escape_html(frame.subtitle) + "</p></header>\n<nav>" + page.contents + "</nav>\n";
  html +=
      "<noscript><div class=\"notice\">The charts need JavaScript; tables and images do not.</div></noscript>\n"
      "<div class=\"notice\" id=\"problems\" hidden>Errors on this page:<pre></pre></div>\n";
  html += frame.notices + frame.lead + page.body + "<footer>" + frame.footer + "</footer>\n</main>\n";
  html += "<script type=\"application/json\" id=\"chart-specs\">" + script_json(page.specs) + "</script>\n";
  if (!page.photos.is_null())
    html += "<script type=\"application/json\" id=\"photo-cells\">" + script_json(page.photos) + "</script>\n" +
            script(assets::page_photos());
  return html + script(assets::vega()) + script(assets::vega_lite()) + script(assets::vega_embed()) +
         script(assets::page_charts()) + "</body>\n</html>\n";
}

}  // namespace sparsight
