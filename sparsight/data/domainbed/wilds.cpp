#include "sparsight/data/domainbed/wilds.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <utility>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/data/readers/csv.h"
#include "sparsight/data/sets/image_files.h"

namespace sparsight {
namespace {

// The rows of a CSV file, one after another, with columns that are found by name.
class NamedColumns {
 public:
  NamedColumns(std::string_view text, const std::string& name) : name_(name), reader_(text, name) {
    const CsvRow* header = reader_.next();
    if (header == nullptr) fail(name_, " is empty; expected a line of column names");
    header_ = header->fields;
  }

  size_t column(const std::string& wanted) const {
    const auto found = std::find(header_.begin(), header_.end(), wanted);
    if (found == header_.end()) fail(name_, ": there is no column \"", wanted, "\" in its first line");
    return static_cast<size_t>(found - header_.begin());
  }

  // Goes on to the next row; false at the end.
  bool next() {
    row_ = reader_.next();
    if (row_ != nullptr && row_->fields.size() != header_.size())
      fail(position(), ": ", row_->fields.size(), " fields, where the first line has ", header_.size());
    return row_ != nullptr;
  }

  const std::string& at(size_t column) const { return row_->fields[column]; }
  int64_t number(size_t column) const {
    const std::string& field = at(column);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || end != field.data() + field.size() || value < 0)
      fail(position(), ": ", header_[column], " is \"", printable(field), "\"; expected a whole number");
    return value;
  }
  // A field that becomes part of a path: letters and digits.
  const std::string& word(size_t column) const {
    const std::string& field = at(column);
    const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0; };
    if (field.empty() || !std::all_of(field.begin(), field.end(), is_plain))
      fail(position(), ": ", header_[column], " is \"", printable(field), "\"; expected letters and digits");
    return field;
  }
  std::string position() const { return cat(name_, ":", row_->line); }

 private:
  std::string name_;
  CsvReader reader_;
  const CsvRow* row_ = nullptr;
  std::vector<std::string> header_;
};

std::string read_metadata(const std::string& root, const std::string& file) {
  const std::string path = root + "/" + file;
  if (!path_exists(path)) fail(printable(root), " has no ", file, "; get the dataset from ", kWildsAddress);
  const Bytes bytes = read_bytes(path, kMaxManifestBytes);
  return {bytes.begin(), bytes.end()};
}

DataSetPtr wilds_set(const std::string& name, const std::string& root, WildsTable table) {
  if (const std::string first = root + "/" + table.images.front().path; !path_exists(first))
    fail("there is no ", printable(first), ", the first image of the metadata; get the dataset from ", kWildsAddress);
  DataInfo info;
  info.name = name;
  info.classes = std::move(table.classes);
  info.domains = std::move(table.environments);
  std::vector<ImageFile> files;
  for (const WildsImage& image : table.images)
    files.push_back({root + "/" + image.path, printable(image.path), image.label, image.environment, {}});
  return std::make_shared<ImageFilesSet>(std::move(info), std::move(files));
}

// Numbers different values in the order in which they are first added.
template <class Value>
class Numbering {
 public:
  int64_t add(const Value& value) { return numbers_.try_emplace(value, std::ssize(numbers_)).first->second; }

  // The values in ascending order. places: receives the place of each number in it.
  std::vector<Value> sorted(std::vector<int64_t>& places) const {
    std::vector<Value> values;
    places.resize(numbers_.size());
    for (const auto& [value, number] : numbers_) {
      places[static_cast<size_t>(number)] = std::ssize(values);
      values.push_back(value);
    }
    return values;
  }

 private:
  std::map<Value, int64_t> numbers_;
};

std::map<std::string, std::string> region_of_countries(std::string_view text, const std::string& name) {
  NamedColumns table(text, name);
  const size_t code = table.column("alpha-3"), region = table.column("region");
  std::map<std::string, std::string> regions;
  while (table.next())
    if (!table.at(region).empty()) regions[table.at(code)] = table.at(region);
  return regions;
}

}  // namespace

WildsTable parse_camelyon17(std::string_view text, const std::string& name) {
  NamedColumns table(text, name);
  const size_t patient = table.column("patient"), node = table.column("node"), x = table.column("x_coord"),
               y = table.column("y_coord"), tumor = table.column("tumor"), center = table.column("center");
  WildsTable result;
  result.classes = {"normal", "tumor"};
  Numbering<int64_t> hospitals;
  while (table.next()) {
    const int64_t label = table.number(tumor);
    if (label > 1) fail(table.position(), ": tumor is ", label, "; expected 0 or 1");
    const std::string lymph_node = cat("patient_", table.word(patient), "_node_", table.number(node));
    result.images.push_back(
        {cat("patches/", lymph_node, "/patch_", lymph_node, "_x_", table.number(x), "_y_", table.number(y), ".png"),
         label, hospitals.add(table.number(center))});
  }
  std::vector<int64_t> places;
  for (const int64_t hospital : hospitals.sorted(places)) result.environments.push_back(cat("hospital_", hospital));
  for (WildsImage& image : result.images) image.environment = places[static_cast<size_t>(image.environment)];
  return result;
}

WildsTable parse_fmow(std::string_view metadata, const std::string& metadata_name, std::string_view countries,
                      const std::string& countries_name) {
  const std::map<std::string, std::string> regions = region_of_countries(countries, countries_name);
  NamedColumns table(metadata, metadata_name);
  const size_t category = table.column("category"), country = table.column("country_code"),
               split = table.column("split");
  WildsTable result;
  Numbering<std::string> classes, environments;
  for (int64_t row = 0; table.next(); ++row) {
    const auto known = regions.find(table.at(country));
    const std::string region = known == regions.end() ? "Other" : known->second;
    const int64_t environment = environments.add(region), label = classes.add(table.at(category));
    if (environment == std::ssize(result.environments)) result.environments.push_back(region);
    if (table.at(split) == "seq") continue;
    result.images.push_back({cat("images/rgb_img_", row, ".png"), label, environment});
  }
  std::vector<int64_t> places;
  result.classes = classes.sorted(places);
  for (WildsImage& image : result.images) image.label = places[static_cast<size_t>(image.label)];
  return result;
}

void check_wilds(const WildsTable& table, const WildsCounts& expected, const std::string& root) {
  const auto check = [&](size_t got, int64_t wanted, const char* what) {
    if (static_cast<int64_t>(got) != wanted)
      fail("the metadata in ", printable(root), " has ", got, " ", what, ", where the published dataset has ", wanted,
           "; get it from ", kWildsAddress);
  };
  check(table.environments.size(), expected.environments, "environments");
  check(table.classes.size(), expected.classes, "classes");
  if (expected.images > 0) check(table.images.size(), expected.images, "images");
  if (table.images.empty()) fail("the metadata in ", printable(root), " lists no images; get it from ", kWildsAddress);
}

DataSetPtr camelyon17(const std::string& root) {
  WildsTable table = parse_camelyon17(read_metadata(root, "metadata.csv"), printable(root) + "/metadata.csv");
  check_wilds(table, {2, 5, 455954}, root);
  return wilds_set("wilds_camelyon", root, std::move(table));
}

DataSetPtr fmow(const std::string& root) {
  const std::string metadata = read_metadata(root, "rgb_metadata.csv");
  const std::string countries = read_metadata(root, "country_code_mapping.csv");
  WildsTable table = parse_fmow(metadata, printable(root) + "/rgb_metadata.csv", countries,
                                printable(root) + "/country_code_mapping.csv");
  check_wilds(table, {62, 6, 0}, root);
  return wilds_set("wilds_fmow", root, std::move(table));
}

}  // namespace sparsight
