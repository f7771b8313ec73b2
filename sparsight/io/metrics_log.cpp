#include "sparsight/io/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/checked_json.h"

namespace sparsight {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 18;

struct Line {
  std::string text;  // with its end, but for a last one without; only the start of one that is too long
  bool too_long = false;
  int64_t number = 0;  // from 1
};

// The lines of a file, one at a time: a log may be larger than memory, and so may a line.
class LineReader {
 public:
  explicit LineReader(const std::string& path) : path_(path), file_(open_for_reading(path)), piece_(kPieceBytes) {
    if (size_of_file(file_, path) > kMaxMetricsBytes)
      fail("cannot read ", printable(path), ": it is larger than the ", kMaxMetricsBytes, " bytes allowed");
  }

  // False at the end.
  bool next(Line& line) {
    line.text.clear();
    line.too_long = false;
    ++line.number;
    while (at_ < size_ || refill()) {
      const char* const begin = piece_.data() + at_;
      const auto* const end = static_cast<const char*>(std::memchr(begin, '\n', size_ - at_));
      const size_t bytes = end ? static_cast<size_t>(end - begin) + 1 : size_ - at_;
      at_ += bytes;
      line.too_long = line.too_long || line.text.size() + bytes > kMaxMetricsLineBytes;
      if (!line.too_long) line.text.append(begin, bytes);
      if (end) {
        if (line.too_long) line.text += '\n';
        return true;
      }
    }
    return !line.text.empty();
  }

 private:
  bool refill() {
    ssize_t got = 0;
    do got = read(file_.get(), piece_.data(), piece_.size());
    while (got < 0 && errno == EINTR);
    if (got < 0) fail_system("read", path_, errno);
    at_ = 0;
    size_ = static_cast<size_t>(got);
    return got > 0;
  }

  std::string path_;
  Descriptor file_;
  std::vector<char> piece_;
  size_t at_ = 0, size_ = 0;
};

// Calls on_object(line, object) or on_bad_line(line, problem) for every line that is not blank.
template <class OnObject, class OnBadLine>
void for_each_line(const std::string& path, const OnObject& on_object, const OnBadLine& on_bad_line) {
  LineReader reader(path);
  for (Line line; reader.next(line);) {
    if (line.text.find_first_not_of(" \t\r\n") == std::string::npos && !line.too_long) continue;
    std::string problem = cat("is longer than the ", kMaxMetricsLineBytes, " bytes allowed");
    std::optional<Json> object = line.too_long ? std::nullopt : try_parse_checked_object(line.text, problem);
    if (object)
      on_object(line, std::move(*object));
    else
      on_bad_line(line, problem);
  }
}

// Whether an object ends before the last byte, which once was a newline.
bool lost_its_newline(std::string_view text) {
  std::string ignored;
  return !text.empty() && try_parse_checked_object(text.substr(0, text.size() - 1), ignored).has_value();
}

// Every line must be an object, except a last line that was not written to its end: it is skipped.
template <class OnObject>
void for_each_whole_line(const std::string& path, const OnObject& on_object) {
  for_each_line(
      path,
      [&](const Line& line, Json object) {
        if (line.text.ends_with('\n')) on_object(line, std::move(object));
      },
      [&](const Line& line, const std::string& problem) {
        if (line.too_long || line.text.ends_with('\n') || lost_its_newline(line.text))
          fail(path, ":", line.number, " ", problem, "; remove the line or restore the file");
      });
}

bool of_the_end(const Json& line) {
  return line.value("kind", Json()) == "done" || line.value("split", Json()) == "test" || line.contains("end") ||
         line.contains("result");
}

// Whether a run that is resumed after `last_step` keeps the line.
bool is_kept(const Json& object, const Line& line, int64_t last_step, const std::string& path) {
  const auto step = object.find("step");
  if (step == object.end() || !step->is_number_integer())
    fail(path, ": a line has no integer \"step\": ", printable(line.text.substr(0, 80)));
  return step->get<int64_t>() <= last_step && !of_the_end(object);
}

// Removes what a resumed run will write again.
void trim(const std::string& path, int64_t last_step) {
  if (!std::filesystem::exists(path)) return;
  size_t kept = 0;
  for_each_whole_line(path, [&](const Line& line, const Json& object) {
    if (is_kept(object, line, last_step, path)) kept += line.text.size();
  });
  if (kept == std::filesystem::file_size(path)) return;
  AtomicFile trimmed(path);
  for_each_whole_line(path, [&](const Line& line, const Json& object) {
    if (is_kept(object, line, last_step, path)) trimmed.write(line.text);
  });
  trimmed.commit();
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path, int64_t last_step)
    : path_(path), file_((trim(path, last_step), open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666))) {
  if (file_.get() < 0) fail_system("write", path, errno);
}

void MetricsLog::write(const Json& line) {
  const std::string text = checked_json_line(line);
  write_all(file_.get(), text.data(), text.size(), path_);
}

std::vector<Json> read_metrics(const std::string& path) {
  std::vector<Json> lines;
  size_t memory = 0;
  if (!std::filesystem::exists(path)) return lines;
  for_each_whole_line(path, [&](const Line&, Json object) {
    memory += json_memory(object);
    if (memory > kMaxMetricsMemory)
      fail(path, " takes more than the ", kMaxMetricsMemory,
           " bytes of memory allowed; remove lines of \"kind\": \"train\"");
    lines.push_back(std::move(object));
  });
  return lines;
}

std::string for_each_readable_line(const std::string& path, const std::function<void(Json object)>& take) {
  int64_t bad_lines = 0, first = 0;
  for_each_line(
      path, [&](const Line&, Json object) { take(std::move(object)); },
      [&](const Line& line, const std::string&) {
        if (bad_lines++ == 0) first = line.number;
      });
  if (bad_lines == 0) return "";
  return cat(bad_lines, bad_lines == 1 ? " line" : " lines", " of metrics.jsonl could not be read and ",
             bad_lines == 1 ? "was" : "were", " left out; the first is line ", first);
}

}  // namespace sparsight
