#include "sparsight/analysis/superclasses/published_division.h"

#include <array>
#include <cctype>
#include <map>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

constexpr std::array<std::array<const char*, 3>, 10> kPublishedRows = {{
    {"boxer", "pug", "rottweiler"},      // dogs
    {"orangutan", "weasel", "panda"},    // other mammals
    {"toucan", "flamingo", "ostrich"},   // birds
    {"eel", "scorpion", "hammerhead"},   // other animals
    {"minivan", "ambulance", "taxi"},    // land vehicles
    {"submarine", "canoe", "pirate"},    // sea vehicles
    {"guacamole", "hotdog", "banana"},   // food
    {"backpack", "pyjama", "kimono"},    // clothes
    {"monitor", "ipod", "photocopier"},  // technical devices
    {"xylophone", "harp", "trumpet"},    // instruments
}};

// The spellings of ImageNet's own list where they differ from the paper's.
const std::map<std::string, std::string>& other_spellings() {
  static const std::map<std::string, std::string> spellings = {
      {"giant panda", "panda"},  {"hammerhead shark", "hammerhead"},
      {"pirate ship", "pirate"}, {"hot dog", "hotdog"},
      {"pajama", "pyjama"},      {"taxicab", "taxi"},
      {"cornet", "trumpet"},     {"marimba", "xylophone"}};
  return spellings;
}

// The names of a class, in lower case and with spaces.
std::vector<std::string> names_of_class(const std::string& text) {
  std::vector<std::string> names(1);
  for (const char c : text) {
    if (c == ',')
      names.emplace_back();
    else if (!(names.back().empty() && c == ' '))
      names.back() += c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return names;
}

}  // namespace

std::optional<PublishedRows> published_rows(const std::vector<std::string>& classes,
                                            const std::vector<int64_t>& class_to_superclass) {
  SPARSIGHT_CHECK(classes.size() == class_to_superclass.size());
  std::map<std::string, int64_t> superclass_named;
  for (size_t k = 0; k < classes.size(); ++k)
    for (const std::string& name : names_of_class(classes[k])) {
      superclass_named.try_emplace(name, class_to_superclass[k]);
      const auto other = other_spellings().find(name);
      if (other != other_spellings().end()) superclass_named.try_emplace(other->second, class_to_superclass[k]);
    }
  PublishedRows found;
  for (const auto& row : kPublishedRows) {
    std::vector<int64_t> of_row;
    for (const char* name : row)
      if (const auto at = superclass_named.find(name); at != superclass_named.end()) of_row.push_back(at->second);
    if (of_row.size() < row.size()) continue;
    ++found.rows;
    if (of_row[0] == of_row[1] && of_row[1] == of_row[2]) ++found.together;
  }
  if (found.rows == 0) return std::nullopt;
  return found;
}

}  // namespace sparsight
