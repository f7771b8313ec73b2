#include "sparsight/data/domainbed/wilds.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/bytes.h"
#include "sparsight/data/readers/csv.h"
#include "sparsight/data/sets/image_files.h"

namespace sparsight {
namespace {

// A CSV file whose columns are found by name.
class NamedColumns {
 public:
  NamedColumns(std::string_view text, std::string name) : name_(std::move(name)), rows_(parse_csv(text, name_)) {
    if (rows_.empty()) fail(name_, " is empty; expected a line of column names");
    header_ = rows_.front().fields;
    rows_.erase(rows_.begin());
  }

  size_t column(const std::string& wanted) const {
    const auto found = std::find(header_.begin(), header_.end(), wanted);
    if (found == header_.end()) fail(name_, ": there is no column \"", wanted, "\" in its first line");
    return static_cast<size_t>(found - header_.begin());
  }

  size_t rows() const { return rows_.size(); }
  const std::string& at(size_t row, size_t column) const {
    const CsvRow& fields = rows_[row];
    if (fields.fields.size() != header_.size())
      fail(name_, ":", fields.line, ": ", fields.fields.size(), " fields, where the first line has ", header_.size());
    return fields.fields[column];
  }
  int64_t number(size_t row, size_t column) const {
    const std::string& field = at(row, column);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || end != field.data() + field.size() || value < 0)
      fail(position(row), ": ", header_[column], " is \"", printable(field), "\"; expected a whole number");
    return value;
  }
  // A field that becomes part of a path: letters and digits.
  const std::string& word(size_t row, size_t column) const {
    const std::string& field = at(row, column);
    const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0; };
    if (field.empty() || !std::all_of(field.begin(), field.end(), is_plain))
      fail(position(row), ": ", header_[column], " is \"", printable(field), "\"; expected letters and digits");
    return field;
  }
  std::string position(size_t row) const { return cat(name_, ":", rows_[row].line); }

 private:
  std::string name_;
  std::vector<CsvRow> rows_;
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

int64_t rank_in(const std::set<std::string>& sorted, const std::string& value) {
  return std::distance(sorted.begin(), sorted.find(value));
}

std::map<std::string, std::string> region_of_countries(std::string_view text, const std::string& name) {
  const NamedColumns table(text, name);
  const size_t code = table.column("alpha-3"), region = table.column("region");
  std::map<std::string, std::string> regions;
  for (size_t row = 0; row < table.rows(); ++row)
    if (!table.at(row, region).empty()) regions[table.at(row, code)] = table.at(row, region);
  return regions;
}

}  // namespace

WildsTable parse_camelyon17(std::string_view text, const std::string& name) {
  const NamedColumns table(text, name);
  const size_t patient = table.column("patient"), node = table.column("node"), x = table.column("x_coord"),
               y = table.column("y_coord"), tumor = table.column("tumor"), center = table.column("center");
  WildsTable result;
  result.classes = {"normal", "tumor"};
  std::set<int64_t> hospitals;
  for (size_t row = 0; row < table.rows(); ++row) hospitals.insert(table.number(row, center));
  for (const int64_t hospital : hospitals) result.environments.push_back(cat("hospital_", hospital));
  for (size_t row = 0; row < table.rows(); ++row) {
    const int64_t label = table.number(row, tumor);
    if (label > 1) fail(table.position(row), ": tumor is ", label, "; expected 0 or 1");
    const std::string lymph_node = cat("patient_", table.word(row, patient), "_node_", table.number(row, node));
    result.images.push_back({cat("patches/", lymph_node, "/patch_", lymph_node, "_x_", table.number(row, x), "_y_",
                                 table.number(row, y), ".png"),
                             label, std::distance(hospitals.begin(), hospitals.find(table.number(row, center)))});
  }
  return result;
}

WildsTable parse_fmow(std::string_view metadata, const std::string& metadata_name, std::string_view countries,
                      const std::string& countries_name) {
  const std::map<std::string, std::string> regions = region_of_countries(countries, countries_name);
  const NamedColumns table(metadata, metadata_name);
  const size_t category = table.column("category"), country = table.column("country_code"),
               split = table.column("split");
  std::set<std::string> classes;
  for (size_t row = 0; row < table.rows(); ++row) classes.insert(table.at(row, category));
  WildsTable result;
  result.classes.assign(classes.begin(), classes.end());
  for (size_t row = 0; row < table.rows(); ++row) {
    const auto known = regions.find(table.at(row, country));
    const std::string region = known == regions.end() ? "Other" : known->second;
    auto& environments = result.environments;
    const auto found = std::find(environments.begin(), environments.end(), region);
    const int64_t environment = std::distance(environments.begin(), found);
    if (found == environments.end()) environments.push_back(region);
    if (table.at(row, split) == "seq") continue;
    result.images.push_back(
        {cat("images/rgb_img_", row, ".png"), rank_in(classes, table.at(row, category)), environment});
  }
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
