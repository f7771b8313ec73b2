#include "sparsight/infer/image_list.h"

#include <algorithm>
#include <filesystem>
#include <istream>

#include "sparsight/core/error.h"
#include "sparsight/core/limits.h"
#include "sparsight/data/readers/bytes.h"
#include "sparsight/data/readers/image.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

void add_folder(const std::string& folder, std::vector<std::string>& files) {
  std::vector<std::string> found;
  std::error_code error;
  // Links to folders are not followed, so a circle of them does no harm.
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->is_regular_file(error) && has_image_ending(entry->path().string()))
      found.push_back(entry->path().string());
  if (error) fail_system("list the folder", printable(folder), error.value());
  if (found.empty()) fail("the folder ", printable(folder), " holds no .jpg, .jpeg or .png file");
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
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
    if (line.size() > kMaxPathBytes)
      fail("a line on standard input is longer than ", kMaxPathBytes, " bytes; name one image a line");
    if (files.size() > kMaxImageNames || ++bytes > kMaxImageNamesBytes)
      fail("standard input names more than ", kMaxImageNames, " images or ", kMaxImageNamesBytes,
           " bytes; predict them in parts");
  }
  add();
}

}  // namespace

std::vector<std::string> image_list(const std::vector<std::string>& arguments, std::istream& input) {
  std::vector<std::string> files;
  for (const std::string& argument : arguments) {
    std::error_code ignored;
    if (argument == "-") {
      add_lines(input, files);
    } else if (fs::is_directory(argument, ignored)) {
      add_folder(argument, files);
    } else {
      files.push_back(argument);
    }
  }
  if (files.empty()) fail("no image is named; give files, folders, or their names on standard input with -");
  return files;
}

}  // namespace sparsight
