#include "sparsight/reproduce/result_charts.h"

#include <algorithm>
#include <utility>

#include "sparsight/core/json_fields.h"
#include "sparsight/reproduce/chart_encodings.h"
#include "sparsight/reproduce/result_text.h"

namespace sparsight {
namespace {

// The name of a line: its value of the series axis, and of every other axis that is not drawn and has several values.
std::string series_name(const ResultTable& table, const FigureChart& chart, const Json& settings) {
  std::string name = chart.series.empty() ? "" : value_text(settings.at(chart.series));
  const bool heat = chart.kind == FigureChart::Kind::heat;
  for (const std::string& axis : table.axes) {
    if (axis == chart.label || axis == chart.series || axis == chart.x || (heat && axis == chart.y) ||
        table.axis_values(axis).size() < 2)
      continue;
    name += (name.empty() ? "" : ", ") + value_text(settings.at(axis));
  }
  return name;
}

std::vector<ChartMark> all_marks(const FigureOutcome& outcome, const FigureChart& chart) {
  const ResultTable& table = outcome.table;
  const bool heat = chart.kind == FigureChart::Kind::heat;
  const std::string& measure = heat ? chart.measure : chart.y;
  std::vector<ChartMark> marks;
  const bool measured_x = !std::ranges::count(table.axes, chart.x);
  const auto add = [&](const Json& settings, bool paper, std::optional<double> value, double deviation) {
    if (!value) return;
    const std::optional<double> x = !measured_x ? std::nullopt
                                    : paper     ? number(settings, chart.x)
                                                : table.mean(settings, chart.x);
    if (measured_x && !x) return;
    marks.push_back({measured_x ? Json(*x) : settings.at(chart.x), heat ? settings.at(chart.y) : Json(),
                     series_name(table, chart, settings), paper, *value, deviation,
                     chart.label.empty() ? "" : value_text(settings.at(chart.label))});
  };
  for (const ResultRow& row : table.rows)
    add(row.settings, false, table.mean(row.settings, measure), table.deviation(row.settings, measure).value_or(0));
  // The paper's values are shown even if nothing was measured there at this scale.
  if (outcome.data.is_compared())
    for (const Json& row : outcome.figure->paper) {
      const auto known = [&](const std::string& axis) { return row.contains(axis); };
      if (std::all_of(table.axes.begin(), table.axes.end(), known))
        add(row, true, number(row, measure), number(row, measure + "_deviation").value_or(0));
    }
  return marks;
}

std::string chart_title(const ResultTable& table, const std::string& measure) {
  for (const Measure& known : table.measures)
    if (known.key == measure) return known.title;
  return measure;
}

std::vector<Chart> heat_charts(const FigureChart& chart, const std::vector<ChartMark>& marks, const std::string& title,
                               const std::string& substitute) {
  std::vector<Chart> charts;
  for (const bool paper : {false, true}) {
    std::vector<std::string> names;
    for (const ChartMark& mark : marks)
      if (mark.paper == paper && std::find(names.begin(), names.end(), mark.series) == names.end())
        names.push_back(mark.series);
    for (const std::string& name : names) {
      std::vector<ChartMark> those;
      for (const ChartMark& mark : marks)
        if (mark.paper == paper && mark.series == name) those.push_back(mark);
      const std::string note = paper ? "the paper's numbers" : "ours" + (substitute.empty() ? "" : "; " + substitute);
      charts.push_back({title + (name.empty() ? "" : ", " + name), note, heat_map_spec(chart, those, title)});
    }
  }
  return charts;
}

}  // namespace

std::vector<Chart> result_charts(const FigureOutcome& outcome) {
  std::vector<Chart> charts;
  const std::string substitute = substitute_note(outcome);
  for (const FigureChart& chart : outcome.figure->charts) {
    const std::vector<ChartMark> marks = all_marks(outcome, chart);
    if (std::all_of(marks.begin(), marks.end(), [](const ChartMark& mark) { return mark.paper; })) continue;
    const std::string title =
        chart_title(outcome.table, chart.kind == FigureChart::Kind::heat ? chart.measure : chart.y);
    FigureChart drawn = chart;
    drawn.x = chart_title(outcome.table, chart.x);
    std::string note = "Error bars: one standard deviation";
    if (!substitute.empty()) note += "; " + substitute;
    if (has_paper(marks)) note += chart.kind == FigureChart::Kind::line ? "; dashed: the paper" : "; pale: the paper";
    if (chart.kind == FigureChart::Kind::line) {
      charts.push_back({title + " by " + drawn.x, note, line_chart_spec(drawn, marks, title)});
    } else if (chart.kind == FigureChart::Kind::bars) {
      charts.push_back({title + " by " + chart.x, note, bar_chart_spec(chart, marks, title)});
    } else {
      for (Chart& map : heat_charts(chart, marks, title, substitute)) charts.push_back(std::move(map));
    }
  }
  return charts;
}

namespace {

// The parts of a note, one below the other where they are wider than the chart together.
Json note_lines(const std::string& note) {
  constexpr size_t kLetters = 90;
  Json lines = Json::array();
  std::string line;
  for (size_t begin = 0; begin < note.size();) {
    const size_t end = std::min(note.find("; ", begin), note.size());
    const std::string part = note.substr(begin, end - begin);
    if (!line.empty() && line.size() + part.size() > kLetters) lines.push_back(std::exchange(line, ""));
    line += line.empty() ? part : "; " + part;
    begin = end + 2;
  }
  lines.push_back(line);
  return lines;
}

}  // namespace

Json standalone_chart(const Chart& chart) {
  Json spec = {{"$schema", "https://vega.github.io/schema/vega-lite/v6.json"},
               {"title", {{"text", chart.title}, {"subtitle", note_lines(chart.note)}, {"anchor", "start"}}},
               {"background", "white"}};
  spec.update(chart.spec);
  spec["width"] = 460;
  spec["config"] = {{"view", {{"stroke", nullptr}}}, {"axisX", {{"grid", false}}}};
  return spec;
}

}  // namespace sparsight
