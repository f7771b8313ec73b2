#include "sparsight/infer/image_list.h"

#include <filesystem>
#include <istream>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/bytes.h"
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
    fail("the folder ", printable(folder), " holds no .jpg, .jpeg or .png file",
         others.count == 0 ? "" : cat(", but ", others.count, " other: ", others.names(), "; convert them"));
  files.insert(files.end(), found.begin(), found.end());
  ignored.add(others);
}

}  // namespace

std::vector<std::string> image_list(const std::vector<std::string>& arguments, std::istream& input) {
  std::vector<std::string> files;
  IgnoredFiles others;
  for (const std::string& argument : arguments) {
    std::error_code ignored;
    if (argument == "-") {
      for (std::string line; std::getline(input, line);) {
        if (line.ends_with('\r')) line.pop_back();
        if (!line.empty()) files.push_back(line);
      }
    } else if (fs::is_directory(argument, ignored)) {
      add_folder(argument, files, others);
    } else {
      files.push_back(argument);
    }
  }
  if (files.empty()) fail("no image is named; give files, folders, or their names on standard input with -");
  warn_of_ignored(others);
  return files;
}

}  // namespace sparsight
