// A manifest: a CSV file whose header row names the columns `path` and `label` (or `labels`, of multi-label data: all
// classes of an image, separated by `;`), optionally `domain`, `split` (train,
// validation or test) and any others, which are attributes (numbers).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sparsight {

struct ManifestRow {
  std::string path;
  int64_t label = 0, domain = 0;
  std::vector<int64_t> labels = {};  // with the column labels: all classes, ascending; `label` is the first
  std::string split;                 // "train", "validation", "test", or "" without that column
  std::vector<float> attributes;
};

struct Manifest {
  std::vector<std::string> classes;  // names in byte order; "0", "1", ... if every label is an integer
  std::vector<std::string> domains;  // in byte order; empty without that column
  std::vector<std::string> attributes;
  std::vector<ManifestRow> rows;
  bool multi_label = false;
};

// Raises Error naming the line: no header, a row with more or fewer fields, an empty path, a label out of range, an
// attribute that is not a number.
Manifest parse_manifest(std::string_view text, const std::string& name);

}  // namespace sparsight
