#include "sparsight/report/explain_items.h"

#include <algorithm>
#include <filesystem>

#include "sparsight/data/readers/image.h"

namespace sparsight {

namespace {

int64_t label_of(const std::string& file, const std::vector<std::string>& classes) {
  const auto found =
      std::find(classes.begin(), classes.end(), std::filesystem::path(file).parent_path().filename().string());
  return found == classes.end() ? -1 : found - classes.begin();
}

Sample read_sample(const std::string& file, int64_t channels) {
  ImageDecoding decoding;
  decoding.channels = static_cast<int>(channels);
  Sample sample;
  sample.image = read_image(file, decoding);
  sample.id = file;
  return sample;
}

}  // namespace

std::vector<ExplainItem> data_set_items(DataSetPtr data, int64_t count) {
  std::vector<ExplainItem> items;
  const int64_t size = data->size(), taken = std::min(count, size);
  for (int64_t i = 0; i < taken; ++i) {
    const int64_t index = i * size / taken;
    items.push_back({data->label(index), [data, index] { return data->get(index); }});
  }
  return items;
}

std::vector<ExplainItem> file_items(const std::vector<std::string>& files, const std::vector<std::string>& classes,
                                    int64_t channels) {
  std::vector<ExplainItem> items;
  for (const std::string& file : files)
    items.push_back({label_of(file, classes), [file, channels] { return read_sample(file, channels); }});
  return items;
}

}  // namespace sparsight
