#include "sparsight/data/sets/array_set.h"

#include <sstream>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/bytes.h"

namespace sparsight {

void check_labels(const std::vector<int64_t>& labels, int64_t classes, const std::string& file) {
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] < 0 || labels[i] >= classes)
      fail(file, ": image ", i, " has label ", labels[i], "; the ", classes, " classes are 0 to ", classes - 1);
}

ArraySet::ArraySet(DataInfo info, LabelledArray array) : info_(std::move(info)), array_(std::move(array)) {
  SPARSIGHT_CHECK(array_.images.dim() == 4 && array_.images.scalar_type() == at::kByte);
  if (array_.images.size(0) != size())
    fail(array_.file, " has ", size(), " labels for ", array_.images.size(0), " images; the files do not match");
  check_labels(array_.labels, static_cast<int64_t>(info_.classes.size()), array_.file);
  info_.channels = array_.images.size(1);
  info_.height = array_.images.size(2);
  info_.width = array_.images.size(3);
  info_.multi_label = array_.label_sets.defined();
  if (size() > 0 && array_.images.numel() == 0) fail(array_.file, ": the images have no pixels");
}

Sample ArraySet::get(int64_t index) const {
  Sample sample;
  sample.label = array_.labels.at(index);
  sample.image = array_.images.select(0, index);
  sample.id = cat(array_.part, "/", index);
  if (info_.multi_label) sample.labels = labels(index);
  return sample;
}

std::vector<int64_t> ArraySet::labels(int64_t index) const {
  if (!info_.multi_label) return DataSet::labels(index);
  const int64_t classes = array_.label_sets.size(1);
  const bool* row = array_.label_sets.const_data_ptr<bool>() + index * classes;
  std::vector<int64_t> labels;
  for (int64_t k = 0; k < classes; ++k)
    if (row[k]) labels.push_back(k);
  return labels;
}

std::vector<std::string> number_names(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<std::string> read_names(const std::string& path) {
  if (!path_exists(path)) return {};
  const Bytes bytes = read_bytes(path, kMaxNamesBytes);
  std::istringstream text(std::string(bytes.begin(), bytes.end()));
  std::vector<std::string> names;
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(printable(line));
  }
  return names;
}

}  // namespace sparsight
