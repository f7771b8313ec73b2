#include "sparsight/eval/records.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <ATen/ops/all.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/label_sets.h"
#include "sparsight/eval/record_format.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"
#include "sparsight/io/safetensors.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxImages = int64_t{1} << 32, kMaxExperts = int64_t{1} << 24;

fs::path run_records(const std::string& run) { return fs::path(run) / "records"; }

// A layer's entry in the index.
struct LayerEntry {
  std::string layer;
  int64_t experts = 0;
  bool soft = false;
  std::optional<double> mean_top_gate = {};
};

Json parse_index(const std::string& path) {
  std::string problem;
  auto index = try_parse_checked_object(read_file(path, kMaxJsonBytes), problem);
  if (!index) fail(printable(path), " is no index of records: it ", problem, "; write the records again");
  return std::move(*index);
}

// The integer at `key`, from low to high.
int64_t whole_at(const Json& entry, const char* key, int64_t low, int64_t high, const std::string& path) {
  const Json value = entry.value(key, Json());
  if (!value.is_number_integer() || value < low || value > high)
    fail(printable(path), " is damaged: ", key, " must be a whole number of ", low, " to ", high, ", got ",
         printable(shown(value)));
  return value.get<int64_t>();
}

std::string text_at(const Json& entry, const char* key, const std::string& path) {
  const Json value = entry.value(key, Json());
  if (!value.is_string()) fail(printable(path), " is damaged: ", key, " must be a string");
  return value.get<std::string>();
}

std::vector<std::string> names_at(const Json& index, const char* key, const std::string& path) {
  const Json list = index.value(key, Json());
  std::vector<std::string> names;
  if (list.is_array())
    for (const Json& name : list)
      if (name.is_string()) names.push_back(name.get<std::string>());
  if (names.empty() || names.size() != list.size())
    fail(printable(path), " is damaged: ", key, " must be a list of names");
  return names;
}

std::vector<LayerEntry> layers_at(const Json& index, const std::string& path) {
  const Json list = index.value("layers", Json());
  if (!list.is_array()) fail(printable(path), " is damaged: layers must be a list");
  std::vector<LayerEntry> layers;
  for (const Json& entry : list) {
    if (!entry.is_object()) fail(printable(path), " is damaged: layers must be a list of objects");
    const Json soft = entry.value("soft", Json(false));
    if (!soft.is_boolean()) fail(printable(path), " is damaged: soft must be true or false");
    layers.push_back({text_at(entry, "layer", path), whole_at(entry, "experts", 1, kMaxExperts, path), soft,
                      number(entry, "mean_top_gate")});
  }
  return layers;
}

// The requested tensors, each checked for type and shape before any is read.
class Columns {
 public:
  explicit Columns(std::string path) : path_(std::move(path)) {
    for (TensorEntry& entry : read_safetensors_header(path_).tensors) {
      std::string name = entry.name;
      there_.emplace(std::move(name), std::move(entry));
    }
  }

  // A size of -1 may be any.
  void want(const std::string& name, at::ScalarType type, const std::vector<int64_t>& shape) {
    const auto found = there_.find(name);
    if (found == there_.end()) fail(printable(path_), " has no column ", printable(name));
    const TensorEntry* const entry = &found->second;
    bool fits = entry->type == type && entry->shape.size() == shape.size();
    for (size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] < 0 || shape[i] == entry->shape[i];
    if (!fits)
      fail(printable(path_), ": the column ", printable(name), " must be ", type, " ", at::IntArrayRef(shape), ", got ",
           entry->type, " ", at::IntArrayRef(entry->shape), "; the file does not match its index");
    bytes_ += static_cast<int64_t>(entry->end - entry->begin);
    wanted_[name] = *entry;
  }

  bool is_double(const std::string& name) const {
    const auto found = there_.find(name);
    return found != there_.end() && found->second.type == at::kDouble;
  }

  void read() {
    if (bytes_ > kMaxRecordBytes)
      fail(printable(path_), " holds ", bytes_, " bytes of records, at most ", kMaxRecordBytes,
           " are read; evaluate on fewer images");
    TensorFile file = read_safetensors(path_, [&](const std::string& name) { return wanted_.count(name) > 0; });
    for (auto& [name, tensor] : file.tensors) tensors_[name] = std::move(tensor);
    for (const auto& [name, entry] : wanted_)
      if (const at::Tensor& tensor = tensors_[name];
          !tensor.defined() || tensor.scalar_type() != entry.type || tensor.sizes() != at::IntArrayRef(entry.shape))
        fail(printable(path_), " was changed while it was read; read it again");
  }

  at::Tensor take(const std::string& name) { return tensors_.at(name); }

 private:
  std::string path_;
  std::map<std::string, TensorEntry> there_, wanted_;
  std::map<std::string, at::Tensor> tensors_;
  int64_t bytes_ = 0;
};

// Values 0 .. count-1.
void check_numbers(const at::Tensor& values, int64_t count, const char* name, const std::string& path) {
  const int64_t low = values.min().item<int64_t>(), high = values.max().item<int64_t>();
  if (low < 0 || high >= count)
    fail(printable(path), ": the column ", name, " must hold numbers of 0 to ", count - 1, ", got ",
         low < 0 ? low : high);
}

std::vector<std::string> split_ids(const at::Tensor& bytes, const at::Tensor& ends, const std::string& path) {
  std::vector<std::string> ids;
  ids.reserve(static_cast<size_t>(ends.size(0)));
  const auto* text = reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>());
  const int64_t* end = ends.const_data_ptr<int64_t>();
  int64_t begin = 0;
  for (int64_t i = 0; i < ends.size(0); begin = end[i++]) {
    if (end[i] < begin || end[i] > bytes.size(0))
      fail(printable(path), ": id ", i, " is at ", begin, " to ", end[i], " of ", bytes.size(0), " bytes");
    ids.emplace_back(text + begin, static_cast<size_t>(end[i] - begin));
  }
  if (begin != bytes.size(0)) fail(printable(path), ": ", bytes.size(0) - begin, " bytes of ids belong to no image");
  return ids;
}

RecordedLayer read_layer(const LayerEntry& entry, Columns& columns, const std::string& path) {
  RecordedLayer layer{entry.layer, entry.experts, {}, {}, {}, entry.mean_top_gate};
  if (entry.soft) {
    layer.combine = columns.take(combine_column(entry.layer));
    return layer;
  }
  layer.chosen = columns.take(chosen_column(entry.layer));
  layer.kept = columns.take(kept_column(entry.layer));
  if (layer.kept.lt(0).logical_or(layer.kept.gt(layer.chosen)).any().item<bool>())
    fail(printable(path), ": layer ", printable(entry.layer),
         " keeps fewer than 0 or more assignments than were chosen");
  return layer;
}

// values: [n,K] uint8. Checks that they are 0 or 1 and that `label` is the first class of each image.
at::Tensor read_label_sets(const at::Tensor& values, const at::Tensor& label, const std::string& path) {
  if (values.gt(1).any().item<bool>()) fail(printable(path), ": the column ", kLabelSetColumn, " must hold 0 and 1");
  if (!values.any(1).all().item<bool>() || !first_classes(values).equal(label))
    fail(printable(path), ": the column ", kLabelColumn, " must hold the first class of the column ", kLabelSetColumn);
  return values.to(at::kBool);
}

}  // namespace

at::Tensor Records::correct() const {
  if (!multi_label()) return prediction.eq(label);
  return label_sets.gather(1, prediction.unsqueeze(1)).squeeze(1);
}

void remove_run_records(const std::string& run) {
  const fs::path folder = run_records(run);
  std::error_code ignored;
  if (fs::is_symlink(fs::symlink_status(folder, ignored))) return;
  for (const char* file : {kRecordIndex, kRecordTensors}) fs::remove(folder / file, ignored);
  fs::remove(folder, ignored);  // only where it is empty
}

std::string records_folder(const std::string& path) {
  std::error_code error;
  const auto holds = [&](const fs::path& file) { return fs::exists(file, error); };
  if (holds(fs::path(path) / kRecordIndex)) return path;
  if (holds(fs::path(path) / "attack.json")) {
    if (!holds(run_records(path) / kRecordIndex))
      fail(printable(path), " holds an attack that is not finished; run its sparsight attack again");
    return run_records(path).string();
  }
  if (fs::is_regular_file(path, error)) {
    const std::string beside = path + ".records";
    if (holds(fs::path(beside) / kRecordIndex)) return beside;
    fail(printable(path), " is a file without records beside it; first: sparsight eval ", printable(path),
         " --records ", printable(beside));
  }
  if (!holds(fs::path(path) / "config.toml")) return path;
  const fs::path below = run_records(path);
  if (holds(below / kRecordIndex)) return below.string();
  fail(printable(path), " is a run folder without records; first: sparsight eval ", printable(path), " --records ",
       printable(below.string()));
}

Records read_records(const std::string& folder, const RecordColumns& wanted) {
  const std::string index_path = (fs::path(folder) / kRecordIndex).string(),
                    path = (fs::path(folder) / kRecordTensors).string();
  std::error_code error;
  if (!fs::exists(index_path, error))
    fail(printable(folder), " holds no records; write them with sparsight eval RUN --records ", printable(folder));
  const Json index = parse_index(index_path);
  if (const int64_t format = whole_at(index, "format", 1, INT64_MAX, index_path); format > kRecordFormat)
    fail(printable(folder), " holds records of format ", format, ", this program reads up to ", kRecordFormat,
         "; use a newer one");
  Records records;
  records.folder = folder;
  records.data = text_at(index, "data", index_path);
  records.split = text_at(index, "split", index_path);
  records.checkpoint = text_at(index, "checkpoint", index_path);
  records.classes = names_at(index, "classes", index_path);
  records.domains = names_at(index, "domains", index_path);
  records.settings = index.value("settings", Json());
  const int64_t images = whole_at(index, "images", 1, kMaxImages, index_path), classes = std::ssize(records.classes);
  const std::vector<LayerEntry> layers = wanted.experts ? layers_at(index, index_path) : std::vector<LayerEntry>();

  Columns columns(path);
  for (const char* name : {kLabelColumn, kDomainColumn, kPredictionColumn, kIdEndColumn})
    columns.want(name, at::kLong, {images});
  columns.want(kIdColumn, at::kByte, {-1});
  const Json several = index.value("multi_label", Json(false));
  if (!several.is_boolean()) fail(printable(index_path), " is damaged: multi_label must be true or false");
  if (several == true) columns.want(kLabelSetColumn, at::kByte, {images, classes});
  if (wanted.logits)
    columns.want(kLogitsColumn, columns.is_double(kLogitsColumn) ? at::kDouble : at::kFloat, {images, classes});
  for (const LayerEntry& layer : layers) {
    if (layer.soft) {
      columns.want(combine_column(layer.layer), at::kFloat, {images, layer.experts});
      continue;
    }
    columns.want(chosen_column(layer.layer), at::kInt, {images, layer.experts});
    columns.want(kept_column(layer.layer), at::kInt, {images, layer.experts});
  }
  columns.read();
  records.label = columns.take(kLabelColumn);
  records.domain = columns.take(kDomainColumn);
  records.prediction = columns.take(kPredictionColumn);
  check_numbers(records.label, classes, kLabelColumn, path);
  check_numbers(records.prediction, classes, kPredictionColumn, path);
  check_numbers(records.domain, std::ssize(records.domains), kDomainColumn, path);
  if (several == true) records.label_sets = read_label_sets(columns.take(kLabelSetColumn), records.label, path);
  records.ids = split_ids(columns.take(kIdColumn), columns.take(kIdEndColumn), path);
  if (wanted.logits) records.logits = columns.take(kLogitsColumn);
  for (const LayerEntry& layer : layers) records.layers.push_back(read_layer(layer, columns, path));
  return records;
}

}  // namespace sparsight
