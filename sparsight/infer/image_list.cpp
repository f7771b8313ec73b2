#include "sparsight/infer/image_list.h"

#include <algorithm>
#include <filesystem>
#include <istream>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/bytes.h"
#include "sparsight/data/readers/image.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

void add_folder(const std::string& folder, std::vector<std::string>& files) {
  std::vector<std::string> found;
  std::error_code error;
  // Links to folders are not followed, so cycles do no harm.
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->is_regular_file(error) && has_image_ending(entry->path().string()))
      found.push_back(entry->path().string());
  if (error) fail_system("list the folder", printable(folder), error.value());
  if (found.empty()) fail("the folder ", printable(folder), " contains no .jpg, .jpeg or .png files");
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
}

}  // namespace

std::vector<std::string> image_list(const std::vector<std::string>& arguments, std::istream& input) {
  std::vector<std::string> files;
  for (const std::string& argument : arguments) {
    std::error_code ignored;
    if (argument == "-") {
      for (std::string line; std::getline(input, line);) {
        if (line.ends_with('\r')) line.pop_back();
        if (!line.empty()) files.push_back(line);
      }
    } else if (fs::is_directory(argument, ignored)) {
      add_folder(argument, files);
    } else {
      files.push_back(argument);
    }
  }
  if (files.empty()) fail("no images were given; name files or folders, or pass their names on standard input with -");
  return files;
}

}  // namespace sparsight
