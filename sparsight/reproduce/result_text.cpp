#include "sparsight/reproduce/result_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/report/format.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/results.h"

namespace sparsight {
namespace {

using Value = std::optional<double>;

constexpr double kLarge = 1e9;  // from here on in scientific notation

bool any(const std::vector<ResultRow>& rows, size_t m, std::vector<Value> ResultRow::*values) {
  return std::any_of(rows.begin(), rows.end(), [&](const ResultRow& row) { return (row.*values)[m].has_value(); });
}

bool is_repeated(const ResultTable& table) {
  return std::any_of(table.rows.begin(), table.rows.end(), [](const ResultRow& row) { return row.trials.size() > 1; });
}

Value difference(const ResultRow& row, size_t m) {
  return row.mean[m] && row.paper[m] ? Value(*row.mean[m] - *row.paper[m]) : std::nullopt;
}

std::string four_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string rounded_text(double value, int decimals) {
  return std::abs(value) < kLarge ? fixed(value, decimals) : four_digits(value);
}

bool rounds_to_nothing(double value, int decimals) {
  return rounded_text(value, decimals).find_first_of("123456789") == std::string::npos;
}

std::string signed_text(Value value, int decimals) {
  if (!value) return "-";
  if (rounds_to_nothing(*value, decimals)) return fixed(0, decimals);
  return (*value > 0 ? "+" : "") + rounded_text(*value, decimals);
}

std::string measured_text(const ResultRow& row, size_t m, int decimals) {
  if (!row.mean[m]) return "-";
  std::string text = number_text(*row.mean[m], decimals);
  if (row.deviation[m]) text += " +- " + rounded_text(*row.deviation[m], decimals);
  if (row.measured[m] < std::ssize(row.trials)) text += cat(" (", row.measured[m], " of ", row.trials.size(), ")");
  return text;
}

std::string paper_text(const ResultRow& row, size_t m, int decimals) {
  if (!row.paper[m]) return "-";
  const std::string text = number_text(*row.paper[m], decimals);
  return row.paper_deviation[m] ? text + " +- " + rounded_text(*row.paper_deviation[m], decimals) : text;
}

// Quoted as in RFC 4180.
std::string csv_field(const std::string& text) {
  return text.find_first_of(",\"\r\n") == std::string::npos ? text : csv_quoted(text);
}

Json json_number(Value value) { return value ? Json(*value) : Json(); }

// One value per measure of each seed, and their means.
Json row_json(const FigureOutcome& outcome, const ResultRow& row) {
  Json json = {{"settings", row.settings}, {"trials", row.trials.size()}, {"seeds", Json::array()}};
  for (const Trial& trial : row.trials) json["seeds"].push_back(trial.seed);
  for (size_t m = 0; m < outcome.table.measures.size(); ++m) {
    Json values = {{"mean", json_number(row.mean[m])},
                   {"deviation", json_number(row.deviation[m])},
                   {"trials", row.measured[m]},
                   {"values", Json::array()}};
    for (const Trial& trial : row.trials) values["values"].push_back(json_number(trial.values[m]));
    if (outcome.data.is_compared()) {
      values["paper"] = json_number(row.paper[m]);
      values["paper_deviation"] = json_number(row.paper_deviation[m]);
      values["difference"] = json_number(difference(row, m));
    }
    json[outcome.table.measures[m].key] = values;
  }
  return json;
}

std::string kind_name(RunData::Kind kind) {
  const char* const names[] = {"none", "published", "unchecked", "custom", "synthetic"};
  return names[static_cast<size_t>(kind)];
}

std::string markdown_cell(const std::string& text) {
  std::string cell;
  for (const char c : printable(text)) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

size_t count_columns(const std::string& utf8) {
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width, bool right) {
  const std::string blanks(width - std::min(width, count_columns(text)), ' ');
  return right ? blanks + text : text + blanks;
}

}  // namespace

std::string csv_number(Value value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value.value_or(0));
  return value ? text : "";
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) line += (i ? "," : "") + csv_field(fields[i]);
  return line + "\n";
}

std::string number_text(double value, int decimals) {
  if (value != 0 && rounds_to_nothing(value, decimals)) return four_digits(value);
  return rounded_text(value, decimals);
}

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return csv_number(value.get<double>());
  return value.is_null() ? "-" : value.dump();
}

TextTable to_result_table(const FigureOutcome& outcome) {
  const ResultTable& table = outcome.table;
  TextTable text;
  const auto column = [&](const std::string& title, bool right) {
    text.header.push_back(title);
    text.right.push_back(right);
  };
  for (const std::string& axis : table.axes) {
    const std::vector<Json> values = table.axis_values(axis);
    column(axis, std::all_of(values.begin(), values.end(), [](const Json& value) { return value.is_number(); }));
  }
  const bool repeated = is_repeated(table);
  if (repeated) column("trials", true);
  for (size_t m = 0; m < table.measures.size(); ++m) {
    column(table.measures[m].title, true);
    if (!any(table.rows, m, &ResultRow::paper)) continue;
    column("paper", true);
    column("difference", true);
  }
  for (const ResultRow& row : table.rows) {
    std::vector<std::string> cells;
    for (const auto& [axis, value] : row.settings.items()) cells.push_back(value_text(value));
    if (repeated) cells.push_back(std::to_string(row.trials.size()));
    for (size_t m = 0; m < table.measures.size(); ++m) {
      const int decimals = table.measures[m].decimals;
      cells.push_back(measured_text(row, m, decimals));
      if (!any(table.rows, m, &ResultRow::paper)) continue;
      cells.push_back(paper_text(row, m, decimals));
      cells.push_back(signed_text(difference(row, m), decimals));
    }
    text.rows.push_back(std::move(cells));
  }
  return text;
}

std::string verdict_text(const Claim& claim) {
  if (claim.withheld) return "withheld at scale smoke";
  if (claim.holds) return *claim.holds ? "holds" : "does not hold";
  if (!claim.seeds) return "undecided";
  return cat("undecided at ", *claim.seeds, *claim.seeds == 1 ? " seed" : " seeds");
}

TextTable claim_table(const std::vector<Claim>& claims) {
  TextTable text{{"claim", "measured", "test", "verdict"}, {false, false, false, false}, {}};
  for (const Claim& claim : claims)
    text.rows.push_back({claim.text, claim.measured, claim.test.empty() ? "-" : claim.test, verdict_text(claim)});
  return text;
}

std::string deviation_note(const ResultTable& table) {
  if (!is_repeated(table)) return "";
  std::vector<std::string> seeds;
  for (const int64_t seed : table.seeds) seeds.push_back(std::to_string(seed));
  return "+- is the standard deviation (dividing by n) over seeds " + join(seeds);
}

std::string substitute_note(const FigureOutcome& outcome) {
  if (outcome.data.is_compared()) return "";
  return cat(outcome.data.is_synthetic() ? "synthetic substitute data: " : "custom data: ", outcome.data.text,
             "; not compared with the paper's numbers");
}

std::vector<std::string> outcome_notes(const FigureOutcome& outcome) {
  std::vector<std::string> notes = outcome.figure->notes;
  if (!outcome.figure->run_notes) return notes;
  for (std::string& note : outcome.figure->run_notes(outcome.run)) notes.push_back(std::move(note));
  return notes;
}

std::string run_note(const FigureOutcome& outcome) {
  const std::string changed = changed_settings(*outcome.figure, outcome.run);
  return cat("Scale ", scale_name(outcome.run.scale), changed.empty() ? "" : "; " + changed,
             outcome.data.kind == RunData::Kind::none ? "" : "; data: " + outcome.data.text);
}

std::string failure_text(const FailedJob& job) {
  std::string settings;
  for (const auto& [key, value] : job.settings.items())
    settings += (settings.empty() ? "" : ", ") + key + " " + value_text(value);
  return settings + ": " + job.error;
}

std::string markdown_table(const TextTable& table) {
  std::vector<std::vector<std::string>> lines = {table.header};
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  std::vector<size_t> widths(table.header.size(), 3);
  for (auto& line : lines)
    for (size_t c = 0; c < line.size(); ++c) {
      line[c] = markdown_cell(line[c]);
      widths[c] = std::max(widths[c], count_columns(line[c]));
    }
  std::string text;
  for (size_t at = 0; at < lines.size(); ++at) {
    for (size_t c = 0; c < widths.size(); ++c) text += "| " + padded(lines[at][c], widths[c], table.right[c]) + " ";
    text += "|\n";
    if (at > 0) continue;
    for (size_t c = 0; c < widths.size(); ++c)
      text +=
          "|" + std::string(table.right[c] ? " " : ":") + std::string(widths[c], '-') + (table.right[c] ? ":" : " ");
    text += "|\n";
  }
  return text;
}

std::string result_csv(const FigureOutcome& outcome) {
  const ResultTable& table = outcome.table;
  const bool paper = outcome.data.is_compared();
  std::vector<std::string> header = table.axes;
  header.push_back("trials");
  for (const Measure& measure : table.measures) {
    header.insert(header.end(), {measure.key, measure.key + "_deviation"});
    if (paper)
      for (const char* ending : {"_paper", "_paper_deviation", "_difference"}) header.push_back(measure.key + ending);
  }
  header.push_back("data");
  std::string text = csv_line(header);
  for (const ResultRow& row : table.rows) {
    std::vector<std::string> fields;
    for (const auto& [axis, value] : row.settings.items()) fields.push_back(value_text(value));
    fields.push_back(std::to_string(row.trials.size()));
    for (size_t m = 0; m < table.measures.size(); ++m) {
      fields.insert(fields.end(), {csv_number(row.mean[m]), csv_number(row.deviation[m])});
      if (paper)
        for (const Value value : {row.paper[m], row.paper_deviation[m], difference(row, m)})
          fields.push_back(csv_number(value));
    }
    fields.push_back(outcome.data.is_synthetic() ? "synthetic substitute data: " + outcome.data.text
                                                 : outcome.data.text);
    text += csv_line(fields);
  }
  return text;
}

Json result_json(const FigureOutcome& outcome) {
  const ResultTable& table = outcome.table;
  Json rows = Json::array(), measures = Json::array(), claims = Json::array(), failed = Json::array();
  for (const Measure& measure : table.measures) measures.push_back({{"key", measure.key}, {"title", measure.title}});
  for (const ResultRow& row : table.rows) rows.push_back(row_json(outcome, row));
  for (const Claim& claim : outcome.claims)
    claims.push_back({{"claim", claim.text},
                      {"measured", claim.measured},
                      {"test", claim.test},
                      {"seeds", claim.seeds ? Json(*claim.seeds) : Json()},
                      {"holds", claim.holds ? Json(*claim.holds) : Json()},
                      {"verdict", verdict_text(claim)}});
  for (const FailedJob& job : outcome.failed) failed.push_back({{"settings", job.settings}, {"error", job.error}});
  return {{"format", 2},
          {"figure", outcome.figure->name},
          {"title", outcome.figure->title},
          {"scale", scale_name(outcome.run.scale)},
          {"settings", outcome.settings},
          {"data",
           {{"kind", kind_name(outcome.data.kind)},
            {"text", outcome.data.text},
            {"fingerprint", outcome.data.fingerprint},
            {"files", outcome.data.files}}},
          {"axes", table.axes},
          {"measures", measures},
          {"seeds", table.seeds},
          {"deviation", deviation_note(table)},
          {"rows", rows},
          {"claims", claims},
          {"failed", failed},
          {"seconds", outcome.seconds},
          {"notes", outcome_notes(outcome)}};
}

std::string result_markdown(const FigureOutcome& outcome) {
  const Figure& figure = *outcome.figure;
  std::string text = "# " + figure.name + ": " + figure.title + "\n\n";
  if (const std::string note = substitute_note(outcome); !note.empty()) text += "**" + note + "**\n\n";
  text += markdown_table(to_result_table(outcome)) + "\n";
  if (const std::string note = deviation_note(outcome.table); !note.empty()) text += note + ".\n";
  text += cat(run_note(outcome), "; total compute time ", duration(outcome.seconds), ".\n");
  if (!outcome.claims.empty()) text += "\n## Claims\n\n" + markdown_table(claim_table(outcome.claims));
  if (!outcome.failed.empty()) text += "\n## Failed jobs\n\n";
  for (const FailedJob& job : outcome.failed) text += "- " + printable(failure_text(job)) + "\n";
  const std::vector<std::string> notes = outcome_notes(outcome);
  if (!notes.empty()) text += "\n## Notes\n\n";
  for (const std::string& note : notes) text += "- " + note + "\n";
  return text;
}

}  // namespace sparsight
