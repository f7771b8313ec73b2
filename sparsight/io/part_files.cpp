#include "sparsight/io/part_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>

#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"
#include "sparsight/io/temporary.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".safetensors";

std::string prefix_of_parts(const std::string& checkpoint) { return fs::path(checkpoint).stem().string() + "-"; }

// A number at the begin of the text, which is then cut off.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view begin) {
  if (!text.starts_with(begin)) return false;
  text.remove_prefix(begin.size());
  return true;
}

// The write that a file of this name is a part of; nothing for other files.
std::optional<int64_t> write_of(const std::string& name, const std::string& prefix) {
  std::string_view rest = name;
  if (!take(rest, prefix)) return std::nullopt;
  const std::optional<int64_t> write = take_number(rest);
  const bool is_part =
      write && take(rest, "-") && take_number(rest) && take(rest, "-of-") && take_number(rest) && rest == kEnding;
  return is_part ? write : std::nullopt;
}

struct PartFile {
  std::string path;
  int64_t write = 0;
};

std::vector<PartFile> list(const std::string& checkpoint) {
  const std::string prefix = prefix_of_parts(checkpoint);
  std::vector<PartFile> found;
  std::error_code missing;  // then there are none
  for (const auto& entry : fs::directory_iterator(fs::path(checkpoint).parent_path(), missing))
    if (const auto write = write_of(entry.path().filename().string(), prefix))
      found.push_back({entry.path().string(), *write});
  std::ranges::sort(found, {}, &PartFile::path);
  return found;
}

// Removes what processes left that were killed while they wrote a part.
void remove_remains_of_parts(const std::string& checkpoint) {
  const std::string prefix = prefix_of_parts(checkpoint);
  const fs::path folder = fs::path(checkpoint).parent_path();
  std::vector<std::string> begun;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename().string();
    const std::string part = name.substr(0, name.find(kEnding) + kEnding.size());
    if (name.find(kEnding) != std::string::npos && write_of(part, prefix) && is_temporary_for(part, name))
      begun.push_back((folder / part).string());
  }
  for (const std::string& part : begun) remove_stale_temporaries(part);
}

void remove_file(const std::string& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) fail_system("remove", path, error.value());
}

}  // namespace

std::string part_index(const std::string& checkpoint) { return checkpoint + ".index.json"; }

std::string index_or_file(const std::string& checkpoint) {
  std::error_code ignored;
  std::string index = part_index(checkpoint);
  return fs::exists(index, ignored) ? index : checkpoint;
}

std::string part_name(const std::string& checkpoint, int64_t write, int64_t part, int64_t parts) {
  std::array<char, 64> numbers{};
  std::snprintf(numbers.data(), numbers.size(), "%lld-%05lld-of-%05lld", static_cast<long long>(write),
                static_cast<long long>(part + 1), static_cast<long long>(parts));
  return cat(prefix_of_parts(checkpoint), numbers.data(), kEnding);
}

int64_t next_part_write(const std::string& checkpoint) {
  int64_t latest = 0;
  for (const PartFile& part : list(checkpoint)) latest = std::max(latest, part.write);
  return latest + 1;
}

std::vector<std::string> find_parts(const std::string& checkpoint) {
  std::vector<std::string> paths;
  for (const PartFile& part : list(checkpoint)) paths.push_back(part.path);
  return paths;
}

void remove_all_but_write(const std::string& checkpoint, int64_t write) {
  remove_file(checkpoint);
  for (const PartFile& part : list(checkpoint))
    if (part.write != write) remove_file(part.path);
  remove_remains_of_parts(checkpoint);
}

void remove_all_but_file(const std::string& checkpoint) {
  remove_file(part_index(checkpoint));
  for (const PartFile& part : list(checkpoint)) remove_file(part.path);
  remove_remains_of_parts(checkpoint);
}

}  // namespace sparsight
