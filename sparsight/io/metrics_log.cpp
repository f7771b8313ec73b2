#include "sparsight/io/metrics_log.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

using OnObject = std::function<void(std::string_view line, Json object)>;
using OnBadLine = std::function<void(std::string_view line, int64_t number)>;

// Calls one of the two for every line that is not blank. `line` includes its newline, which the last one may lack;
// numbers start at 1.
void for_each_line(const std::string& text, const OnObject& on_object, const OnBadLine& on_bad_line) {
  int64_t number = 1;
  for (size_t start = 0; start < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', start), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(start, end - start);
    start = end;
    if (line.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    Json object = parse_json(line);
    if (object.is_object())
      on_object(line, std::move(object));
    else
      on_bad_line(line, number);
  }
}

// Every line must be an object, except a last line without newline, which is skipped.
void for_each_whole_line(const std::string& path, const OnObject& on_object) {
  for_each_line(
      read_file(path, kMaxMetricsBytes),
      [&](std::string_view line, Json object) {
        if (line.ends_with('\n')) on_object(line, std::move(object));
      },
      [&](std::string_view line, int64_t number) {
        if (line.ends_with('\n')) fail(path, ":", number, " is not a JSON object; remove the line or restore the file");
      });
}

bool of_the_end(const Json& line) {
  return line.value("kind", Json()) == "done" || line.value("split", Json()) == "test" || line.contains("end");
}

// Removes what a resumed run will write again.
void trim(const std::string& path, int64_t last_step) {
  if (!std::filesystem::exists(path)) return;
  std::string kept;
  for_each_whole_line(path, [&](std::string_view line, const Json& object) {
    const auto step = object.find("step");
    if (step == object.end() || !step->is_number_integer())
      fail(path, ": a line has no integer \"step\": ", printable(line.substr(0, 80)));
    if (step->get<int64_t>() <= last_step && !of_the_end(object)) kept += line;
  });
  if (kept.size() != std::filesystem::file_size(path)) write_file_atomically(path, kept);
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path, int64_t last_step)
    : path_(path), file_((trim(path, last_step), open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666))) {
  if (file_.get() < 0) fail_system("write", path, errno);
}

void MetricsLog::write(const Json& line) {
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  write_all(file_.get(), text.data(), text.size(), path_);
}

std::vector<Json> read_metrics(const std::string& path) {
  std::vector<Json> lines;
  if (!std::filesystem::exists(path)) return lines;
  for_each_whole_line(path, [&](std::string_view, Json object) { lines.push_back(std::move(object)); });
  return lines;
}

ReadableMetrics readable_metrics(const std::string& text) {
  ReadableMetrics metrics;
  int64_t bad_lines = 0, first = 0;
  for_each_line(
      text, [&](std::string_view, Json object) { metrics.lines.push_back(std::move(object)); },
      [&](std::string_view, int64_t number) {
        if (bad_lines++ == 0) first = number;
      });
  if (bad_lines > 0)
    metrics.warning = cat(bad_lines, bad_lines == 1 ? " line" : " lines",
                          " of metrics.jsonl could not be read and were left out; the first is line ", first);
  return metrics;
}

}  // namespace sparsight
