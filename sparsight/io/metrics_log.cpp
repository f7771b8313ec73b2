#include "sparsight/io/metrics_log.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

constexpr size_t kMaxLog = size_t{1} << 32;  // a run of years

// Calls `visit` with the text (with its end) and the object of every whole line.
void for_each_line(const std::string& text, const std::string& path,
                   const std::function<void(std::string_view, Json)>& visit) {
  size_t number = 1;
  for (size_t start = 0, end; (end = text.find('\n', start)) != std::string::npos; start = end + 1, ++number) {
    const std::string_view line(text.data() + start, end + 1 - start);
    Json object = Json::parse(line, nullptr, false);
    if (!object.is_object()) fail(path, ":", number, " is not a JSON object; remove the line or restore the file");
    visit(line, std::move(object));
  }
}

bool of_the_end(const Json& line) {
  return line.value("kind", Json()) == "done" || line.value("split", Json()) == "test";
}

// Removes what a resumed run will write again.
void trim(const std::string& path, int64_t last_step) {
  if (!std::filesystem::exists(path)) return;
  const std::string text = read_file(path, kMaxLog);
  std::string kept;
  for_each_line(text, path, [&](std::string_view line, const Json& object) {
    const auto step = object.find("step");
    if (step == object.end() || !step->is_number_integer())
      fail(path, ": a line has no integer \"step\": ", line.substr(0, 80));
    if (step->get<int64_t>() <= last_step && !of_the_end(object)) kept += line;
  });
  if (kept != text) write_file_atomically(path, kept);
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
  for_each_line(read_file(path, kMaxLog), path,
                [&](std::string_view, Json object) { lines.push_back(std::move(object)); });
  return lines;
}

}  // namespace sparsight
