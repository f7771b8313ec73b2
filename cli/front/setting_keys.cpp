#include "cli/setting_keys.h"

#include <sstream>

namespace sparsight::cli {

// What `sparsight config show` prints; made by default_settings.cmake.
extern const char default_settings[];

std::vector<std::string> setting_keys() {
  std::vector<std::string> names;
  std::string section;
  std::istringstream lines(default_settings);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('['))
      section = line.substr(1, line.find(']') - 1);
    else if (const size_t equals = line.find(" = "); equals != std::string::npos)
      names.push_back(section + "." + line.substr(0, equals));
  }
  return names;
}

}  // namespace sparsight::cli
