#include "sparsight/infer/image_list.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <istream>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/limits.h"
#include "sparsight/data/readers/folder.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

void add_folder(const std::string& folder, std::vector<std::string>& files, IgnoredFiles& ignored) {
  std::error_code error;
  IgnoredFiles others;
  const std::vector<std::string> found = images_below(folder, others, error);
  if (error) fail_system("list the folder", folder, error.value());
  if (found.empty())
    fail("the folder ", printable(folder), " contains no .jpg, .jpeg or .png files",
         others.count == 0 ? "" : cat(", but ", others.count, " other: ", others.names(), "; convert them"));
  files.insert(files.end(), found.begin(), found.end());
  ignored.add(others);
}

// An argument that is not "-".
void add_argument(const std::string& argument, std::vector<std::string>& files, IgnoredFiles& others) {
  std::error_code ignored;
  if (fs::is_directory(argument, ignored))
    add_folder(argument, files, others);
  else
    files.push_back(argument);
}

[[noreturn]] void fail_empty() {
  fail("no images were given; name files or folders, or pass their names on standard input with -");
}

// Whether there is something to read, or the end of the input.
bool readable(int file, int milliseconds) {
  pollfd waiting{file, POLLIN, 0};
  return poll(&waiting, 1, milliseconds) > 0;
}

void check_line_length(size_t bytes) {
  if (bytes > kMaxPathBytes)
    fail("a line on standard input is longer than ", kMaxPathBytes, " bytes; name one image a line");
}

// The names of an input that may never end: one line each.
void add_lines(std::istream& input, std::vector<std::string>& files) {
  size_t bytes = 0;
  std::string line;
  const auto add = [&] {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) files.push_back(line);
    line.clear();
  };
  for (int c = input.get(); c != std::char_traits<char>::eof(); c = input.get()) {
    if (c == '\n')
      add();
    else
      line += static_cast<char>(c);
    check_line_length(line.size());
    if (files.size() > kMaxImageNames || ++bytes > kMaxImageNamesBytes)
      fail("standard input names more than ", kMaxImageNames, " images or ", kMaxImageNamesBytes,
           " bytes; predict them in parts");
  }
  add();
}

}  // namespace

std::vector<std::string> image_list(const std::vector<std::string>& arguments, std::istream& input) {
  std::vector<std::string> files;
  IgnoredFiles others;
  for (const std::string& argument : arguments) {
    if (argument == "-")
      add_lines(input, files);
    else
      add_argument(argument, files, others);
  }
  if (files.empty()) fail_empty();
  warn_of_ignored(others);
  return files;
}

ImageNames::ImageNames(const std::vector<std::string>& arguments, int input) : input_(input) {
  IgnoredFiles others;
  for (const std::string& argument : arguments) {
    std::vector<std::string> files;
    if (argument == "-")
      names_.push_back(std::nullopt);
    else
      add_argument(argument, files, others);
    names_.insert(names_.end(), files.begin(), files.end());
  }
  if (names_.empty()) fail_empty();
  warn_of_ignored(others);
}

int64_t ImageNames::total() const {
  const bool known = std::ranges::all_of(names_, [](const auto& name) { return name.has_value(); });
  return known ? static_cast<int64_t>(names_.size()) : 0;
}

std::optional<std::string> ImageNames::next(bool wait) {
  while (position_ < names_.size()) {
    std::optional<std::string> name = names_[position_] ? names_[position_] : next_line(wait);
    if (!name && !ended_) return std::nullopt;  // not yet, or interrupted
    if (!name || names_[position_]) ++position_;
    if (!name) continue;  // the input has ended
    ++returned_;
    return name;
  }
  if (returned_ == 0) fail_empty();
  return std::nullopt;
}

std::optional<std::string> ImageNames::next_line(bool wait) {
  constexpr int kMilliseconds = 100;  // between looks at Ctrl-C
  while (true) {
    if (const size_t end = read_.find('\n'); end != std::string::npos || (ended_ && !read_.empty())) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end == std::string::npos ? end : end + 1);
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty()) return line;
      continue;
    }
    check_line_length(read_.size());
    if (ended_ || interrupted()) return std::nullopt;
    if (!readable(input_, wait ? kMilliseconds : 0)) {
      if (wait) continue;
      return std::nullopt;
    }
    char buffer[4096];
    const ssize_t count = read(input_, buffer, sizeof(buffer));
    if (count < 0 && errno != EINTR) fail_system("read", "standard input", errno);
    if (count > 0) read_.append(buffer, static_cast<size_t>(count));
    if (count == 0) ended_ = true;
  }
}

}  // namespace sparsight
