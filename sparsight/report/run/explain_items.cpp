#include "sparsight/report/run/explain_items.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "sparsight/core/random.h"
#include "sparsight/data/readers/image.h"

namespace sparsight {

namespace {

int64_t folder_label(const std::string& file, const std::vector<std::string>& classes) {
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

// `count` of 0..size-1, ascending; the same each time. Random rather than evenly spaced: labels may repeat with a fixed
// stride.
std::vector<int64_t> random_sample(int64_t size, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(0, "explain.sample");
  const int64_t taken = std::min(count, size);
  for (int64_t i = 0; i < taken; ++i) std::swap(order[i], order[i + random.below(size - i)]);
  order.resize(static_cast<size_t>(taken));
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace

std::vector<ExplainItem> data_set_items(const DataSetPtr& data, int64_t count) {
  std::vector<ExplainItem> items;
  for (const int64_t index : random_sample(data->size(), count))
    items.push_back({data->info().multi_label ? -1 : data->label(index), [data, index] { return data->get(index); },
                     data->domain(index)});
  return items;
}

std::vector<ExplainItem> file_items(const std::vector<std::string>& files, const std::vector<std::string>& classes,
                                    int64_t channels) {
  std::vector<ExplainItem> items;
  for (const std::string& file : files)
    items.push_back({folder_label(file, classes), [file, channels] { return read_sample(file, channels); }});
  return items;
}

}  // namespace sparsight
