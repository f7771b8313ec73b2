#include "sparsight/analysis/superclasses/map_file.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {
namespace {

constexpr size_t kMaxShownBytes = 40;  // of a bad line in an error

std::string_view without_blanks(std::string_view line) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  return line;
}

int64_t map_entry(std::string_view line, const std::string& position) {
  const std::string_view word = without_blanks(line);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool is_number = error == std::errc() && end == word.data() + word.size();
  if (is_number && value >= 0 && value < kMaxMapClasses) return value;
  const std::string shown = cat(printable(word.substr(0, kMaxShownBytes)), word.size() > kMaxShownBytes ? "..." : "");
  fail(position, ": \"", shown, "\" is not a super-class: each line of a map holds one whole number of 0 to ",
       kMaxMapClasses - 1);
}

// Every number of 0 to the largest one names a super-class, so each needs a class.
void check_without_gaps(const std::vector<int64_t>& class_to_superclass, const std::string& name) {
  const int64_t count = superclass_count(class_to_superclass);
  std::vector<bool> is_used(static_cast<size_t>(count));
  for (const int64_t entry : class_to_superclass) is_used[static_cast<size_t>(entry)] = true;
  const auto unused = std::ranges::find(is_used, false);
  if (unused == is_used.end()) return;
  const int64_t gap = unused - is_used.begin();
  const auto above = std::ranges::find_if(class_to_superclass, [&](int64_t entry) { return entry > gap; });
  fail(name, ":", above - class_to_superclass.begin() + 1, ": super-class ", *above, " is named, but no line names ",
       gap, "; number the super-classes 0, 1, 2, ... without gaps");
}

}  // namespace

std::vector<int64_t> read_superclass_map(const std::string& path) {
  return parse_superclass_map(read_file(path, kMaxTextBytes), path);
}

std::vector<int64_t> parse_superclass_map(std::string_view text, const std::string& path) {
  const std::string name = printable(path);
  std::vector<int64_t> class_to_superclass;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string position = cat(name, ":", class_to_superclass.size() + 1);
    if (std::ssize(class_to_superclass) == kMaxMapClasses)
      fail(position, ": a map has at most ", kMaxMapClasses, " lines, one for each class");
    class_to_superclass.push_back(map_entry(text.substr(at, end - at), position));
    at = end + 1;
  }
  if (class_to_superclass.empty())
    fail(name, ":1: the file is empty; a map has one line for each class: the number of its super-class");
  check_without_gaps(class_to_superclass, name);
  return class_to_superclass;
}

void write_superclass_map(const std::string& path, const std::vector<int64_t>& class_to_superclass) {
  std::string text;
  for (const int64_t entry : class_to_superclass) text += std::to_string(entry) + "\n";
  write_file_atomically(path, text);
}

int64_t superclass_count(const std::vector<int64_t>& class_to_superclass) {
  return class_to_superclass.empty() ? 0 : std::ranges::max(class_to_superclass) + 1;
}

}  // namespace sparsight
