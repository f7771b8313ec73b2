#include "sparsight/data/readers/manifest.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/data/readers/csv.h"

namespace sparsight {
namespace {

constexpr int64_t kMaxClasses = 1 << 20;

template <class T>
bool to_number(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty();
}

std::string canonical_split(const std::string& text, const std::string& where) {
  if (text == "train" || text == "test" || text == "validation") return text;
  if (text == "val" || text == "valid") return "validation";
  fail(where, ": split must be train, validation or test, got \"", printable(text), "\"");
}

std::vector<std::string> distinct(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

// Indices of `column` in a list of names; the names are returned.
std::vector<std::string> index_names(const std::vector<CsvRow>& rows, size_t column, std::vector<ManifestRow>& out,
                                     int64_t ManifestRow::*index) {
  std::vector<std::string> names;
  for (size_t i = 1; i < rows.size(); ++i) names.push_back(rows[i].fields[column]);
  names = distinct(std::move(names));
  for (size_t i = 1; i < rows.size(); ++i)
    out[i - 1].*index = std::lower_bound(names.begin(), names.end(), rows[i].fields[column]) - names.begin();
  return printable_names(names);
}

// The class names or numbers of one row. Raises Error where there is none, or an empty one.
std::vector<std::string> cell_labels(const CsvRow& row, size_t column, bool several, const std::string& name) {
  const std::string& field = row.fields[column];
  if (field.empty()) fail(name, ":", row.line, ": the label is empty");
  if (!several) return {field};
  std::vector<std::string> labels;
  for (size_t begin = 0; begin <= field.size();) {
    const size_t end = std::min(field.find(';', begin), field.size());
    labels.push_back(trimmed(field.substr(begin, end - begin)));
    if (labels.back().empty())
      fail(name, ":", row.line, ": labels has an empty class in \"", printable(field), "\"; write them as cat;dog");
    begin = end + 1;
  }
  return labels;
}

// Labels that are all whole numbers are the indices themselves; `labels` are those of each row.
bool index_numbers(const std::vector<CsvRow>& rows, const std::vector<std::vector<std::string>>& labels,
                   Manifest& manifest, const std::string& name) {
  int64_t largest = 0;
  std::vector<std::vector<int64_t>> numbers(labels.size());
  for (size_t i = 0; i < labels.size(); ++i)
    for (const std::string& text : labels[i]) {
      int64_t label = 0;
      if (!to_number(text, label)) return false;
      if (label < 0 || label >= kMaxClasses)
        fail(name, ":", rows[i + 1].line, ": label ", label, " is out of range; labels are 0 to ", kMaxClasses - 1,
             ", or names");
      largest = std::max(largest, label);
      numbers[i].push_back(label);
    }
  for (size_t i = 0; i < labels.size(); ++i) manifest.rows[i].labels = std::move(numbers[i]);
  for (int64_t i = 0; i <= largest; ++i) manifest.classes.push_back(std::to_string(i));
  return true;
}

// Classes are the names in byte order.
void index_classes(const std::vector<std::vector<std::string>>& labels, Manifest& manifest) {
  std::vector<std::string> names;
  for (const std::vector<std::string>& row : labels) names.insert(names.end(), row.begin(), row.end());
  names = distinct(std::move(names));
  for (size_t i = 0; i < labels.size(); ++i)
    for (const std::string& label : labels[i])
      manifest.rows[i].labels.push_back(std::lower_bound(names.begin(), names.end(), label) - names.begin());
  manifest.classes = printable_names(names);
}

// Sets the labels of all rows and the classes.
void read_labels(const std::vector<CsvRow>& rows, size_t column, Manifest& manifest, const std::string& name) {
  std::vector<std::vector<std::string>> labels;
  for (size_t i = 1; i < rows.size(); ++i) labels.push_back(cell_labels(rows[i], column, manifest.multi_label, name));
  if (!index_numbers(rows, labels, manifest, name)) index_classes(labels, manifest);
  for (ManifestRow& row : manifest.rows) {
    std::sort(row.labels.begin(), row.labels.end());
    row.labels.erase(std::unique(row.labels.begin(), row.labels.end()), row.labels.end());
    row.label = row.labels.front();
    if (!manifest.multi_label) row.labels.clear();
  }
  if (manifest.multi_label && manifest.classes.size() < 2)
    fail(name, ": labels names one class, \"", manifest.classes.front(), "\"; at least two are needed");
}

}  // namespace

Manifest parse_manifest(std::string_view text, const std::string& name) {
  const std::vector<CsvRow> rows = parse_csv(text, name);
  if (rows.empty())
    fail(name, " is empty; its first line must name the columns: path,label[,domain][,split][,attributes...]");
  const std::vector<std::string>& header = rows[0].fields;
  const auto column = [&](const std::string& wanted) {
    return static_cast<size_t>(std::find(header.begin(), header.end(), wanted) - header.begin());
  };
  const size_t path = column("path"), one = column("label"), several = column("labels"), domain = column("domain"),
               split = column("split"), label = std::min(one, several);
  if (path == header.size() || label == header.size())
    fail(name,
         ": the first line must name the columns path and label, or labels for several classes as cat;dog "
         "(path,label[,domain][,split][,attributes...]), got \"",
         printable(join(header, ",")), "\"");
  if (std::max(one, several) < header.size())
    fail(name, ": the first line names both label and labels; keep label for one class per image, labels for several");
  if (distinct(header).size() != header.size()) fail(name, ": two columns have the same name");
  if (rows.size() == 1) fail(name, " has a header and no images");

  Manifest manifest;
  manifest.multi_label = several < header.size();
  std::vector<size_t> attributes;
  for (size_t i = 0; i < header.size(); ++i)
    if (i != path && i != label && i != domain && i != split) attributes.push_back(i);
  for (const size_t i : attributes) manifest.attributes.push_back(printable(header[i]));
  manifest.rows.resize(rows.size() - 1);
  for (size_t i = 1; i < rows.size(); ++i) {
    const std::vector<std::string>& fields = rows[i].fields;
    const std::string where = cat(name, ":", rows[i].line);
    if (fields.size() != header.size())
      fail(where, ": ", fields.size(), " fields, the first line names ", header.size());
    ManifestRow& row = manifest.rows[i - 1];
    row.path = fields[path];
    if (row.path.empty() || row.path.find('\0') != std::string::npos) fail(where, ": the path is empty or not a path");
    if (split < header.size()) row.split = canonical_split(fields[split], where);
    for (const size_t attribute : attributes) {
      float value = 0;
      if (!to_number(fields[attribute], value) || !std::isfinite(value))
        fail(where, ": attribute ", printable(header[attribute]), " must be a number, got \"",
             printable(fields[attribute]), "\"");
      row.attributes.push_back(value);
    }
  }
  read_labels(rows, label, manifest, name);
  if (domain < header.size()) manifest.domains = index_names(rows, domain, manifest.rows, &ManifestRow::domain);
  return manifest;
}

}  // namespace sparsight
