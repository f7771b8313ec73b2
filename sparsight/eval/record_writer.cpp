#include "sparsight/eval/record_writer.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <ATen/ops/argmax.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <nlohmann/json.hpp>

#include "sparsight/analysis/router_accuracy.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/eval/record_format.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

bool is_of_records(const fs::path& entry) {
  const std::string name = entry.filename().string();
  return name == kRecordIndex || name == kRecordTensors || name.ends_with(kTemporaryEnding);
}

// Whether the folder had to be created.
bool take_folder(const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder, error)) {
    if (!fs::is_directory(folder, error))
      fail_usage("cannot write records into ", printable(folder), ": it is not a folder; choose another path");
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
      if (!is_of_records(entry.path()))
        fail_usage("cannot write records into ", printable(folder), ": it holds ",
                   printable(entry.path().filename().string()),
                   ", which are not records; choose a new or empty folder");
    if (error) fail_system("read", folder, error.value());
    return false;
  }
  create_folder(folder);
  return true;
}

std::string file_in(const std::string& folder, const char* name) { return (fs::path(folder) / name).string(); }

// [images, experts] int32: how many assignments of each image's tokens went to each expert.
at::Tensor expert_counts(const at::Tensor& image, const at::Tensor& expert, int64_t images, int64_t experts) {
  const at::Tensor cell = image.mul(experts).add(expert);
  return at::bincount(cell, {}, images * experts).view({images, experts}).to(at::kInt);
}

Json column(const std::string& name, const char* type, const char* shape, const char* holds) {
  return {{"name", name}, {"type", type}, {"shape", shape}, {"holds", holds}};
}

}  // namespace

RecordWriter::RecordWriter(const std::string& folder)
    : folder_(folder),
      made_folder_(take_folder(folder)),
      columns_(std::make_unique<SafetensorsRowWriter>(file_in(folder, kRecordTensors))) {}

RecordWriter::~RecordWriter() {
  std::error_code error;
  columns_.reset();
  if (made_folder_) fs::remove(folder_, error);  // only where it is empty
}

RecordWriter::Layer& RecordWriter::noted_layer(const std::string& name, int64_t experts, bool soft) {
  for (Layer& layer : layers_)
    if (layer.name == name) return layer;
  layers_.push_back({name, experts, soft});
  return layers_.back();
}

void RecordWriter::add_routing(const Routing& routing, int64_t images) {
  if (routing.tokens == 0) return;
  SPARSIGHT_CHECK(routing.tokens % images == 0);
  Layer& layer = noted_layer(routing.layer, routing.experts, false);
  const at::Tensor top = routing.gate.masked_select(routing.rank.eq(0));
  layer.top_gates += top.sum(at::kDouble).item<double>();
  layer.first_choices += top.numel();
  const int64_t per_image = routing.tokens / images;
  const at::Tensor image = routing.token.floor_divide(per_image), kept = routing.kept;
  columns_->append(chosen_column(routing.layer), expert_counts(image, routing.expert, images, routing.experts));
  columns_->append(
      kept_column(routing.layer),
      expert_counts(image.masked_select(kept), routing.expert.masked_select(kept), images, routing.experts));
}

void RecordWriter::add_super_classes(const std::vector<int64_t>& super_class_of,
                                     const std::vector<std::string>& names) {
  SPARSIGHT_CHECK(images_ == 0);
  super_class_of_ = super_class_of;
  super_classes_ = names;
}

void RecordWriter::add_choices(const Batch& batch, const std::vector<Routing>& routings) {
  if (super_class_of_.empty()) return;
  columns_->append(kSuperClassColumn, at::tensor(super_class_of_, at::kLong).index_select(0, batch.labels));
  for (const Routing& routing : routings) {
    if (routing.experts != std::ssize(super_classes_)) continue;
    const at::Tensor choice = router_choice(routing, batch.labels.size(0));
    if (!choice.defined()) continue;
    columns_->append(router_choice_column(routing.layer), choice);
    noted_layer(routing.layer, routing.experts, false).guided = true;
  }
}

void RecordWriter::add_soft_routing(const SoftRouting& routing, int64_t images) {
  noted_layer(routing.layer, routing.experts, true);
  const at::Tensor by_slot = routing.combine.to(at::kFloat).mean(1);  // [B,P]
  columns_->append(combine_column(routing.layer), by_slot.view({images, routing.experts, routing.slots}).sum(2));
}

void RecordWriter::observe(const Batch& batch, const ModelOutput& output) {
  const int64_t images = batch.labels.size(0);
  SPARSIGHT_CHECK(std::ssize(batch.ids) == images && output.logits.size(0) == images);
  columns_->append(kLabelColumn, batch.labels);
  multi_label_ = batch.label_sets.defined();
  if (multi_label_) columns_->append(kLabelSetColumn, batch.label_sets.to(at::kByte));
  columns_->append(kDomainColumn, batch.domains);
  columns_->append(kPredictionColumn, output.logits.argmax(1));
  logits_type_ = output.logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  columns_->append(kLogitsColumn, output.logits.to(logits_type_));
  at::Tensor ends = at::empty({images}, at::kLong);
  std::string ids;
  for (int64_t i = 0; i < images; ++i) {
    ids += batch.ids[static_cast<size_t>(i)];
    ends.mutable_data_ptr<int64_t>()[i] = id_bytes_ + std::ssize(ids);
  }
  id_bytes_ += std::ssize(ids);
  at::Tensor bytes = at::empty({std::ssize(ids)}, at::kByte);
  if (!ids.empty()) std::memcpy(bytes.mutable_data_ptr(), ids.data(), ids.size());
  columns_->append(kIdColumn, bytes);
  columns_->append(kIdEndColumn, ends);
  for (const Routing& routing : output.routings) add_routing(routing, images);
  add_choices(batch, output.routings);
  for (const SoftRouting& routing : output.soft_routings) add_soft_routing(routing, images);
  images_ += images;
}

void RecordWriter::commit(const RecordSource& source) {
  if (images_ == 0) fail("no image was evaluated, so there are no records to write");
  Json columns =
      Json::array({column(kLabelColumn, "I64", "n", "the image's class, by its number in classes"),
                   column(kDomainColumn, "I64", "n", "its domain, by its number in domains"),
                   column(kPredictionColumn, "I64", "n", "the class with the largest logit"),
                   column(kLogitsColumn, logits_type_ == at::kDouble ? "F64" : "F32", "n,K", "the model's logits"),
                   column(kIdColumn, "U8", "bytes", "ids of the images, concatenated, as UTF-8"),
                   column(kIdEndColumn, "I64", "n", "where each id ends")});
  if (multi_label_) {
    columns[0]["holds"] = "the first of its classes, by its number in classes";
    columns.push_back(column(kLabelSetColumn, "U8", "n,K", "1 for each of the image's classes, else 0"));
  }
  if (!super_class_of_.empty())
    columns.push_back(column(kSuperClassColumn, "I64", "n", "the image's super-class, by its number in super_classes"));
  const int64_t format = multi_label_ ? kRecordFormat : kSingleLabelFormat;
  Json layers = Json::array();
  for (const Layer& layer : layers_) {
    layers.push_back({{"layer", layer.name}, {"experts", layer.experts}, {"soft", layer.soft}});
    if (layer.first_choices > 0)
      layers.back()["mean_top_gate"] = layer.top_gates / static_cast<double>(layer.first_choices);
    if (layer.soft) {
      columns.push_back(
          column(combine_column(layer.name), "F32", "n,E", "mean weight of the expert's slots in the image's tokens"));
      continue;
    }
    columns.push_back(column(chosen_column(layer.name), "I32", "n,E", "assignments of the image before capacity"));
    columns.push_back(column(kept_column(layer.name), "I32", "n,E", "assignments of the image after capacity"));
    if (layer.guided)
      columns.push_back(column(router_choice_column(layer.name), "I64", "n", "the router's most probable super-class"));
  }
  Json index{{"format", format},
             {"multi_label", multi_label_},
             {"images", images_},
             {"data", source.data.name},
             {"split", source.split},
             {"checkpoint", printable(source.checkpoint)},
             {"step", source.step},
             {"weights", source.weights},
             {"classes", printable_names(source.data.classes)},
             {"domains", printable_names(source.data.domains)},
             {"layers", std::move(layers)},
             {"columns", std::move(columns)},
             {"settings", source.settings}};
  if (!super_class_of_.empty())
    index.update({{"super_classes", printable_names(super_classes_)}, {"super_class_of", super_class_of_}});
  // Both files are complete on the disk before earlier records are removed.
  AtomicFile tensors(file_in(folder_, kRecordTensors)), index_file(file_in(folder_, kRecordIndex));
  columns_->write(tensors, {{"format", "sparsight-records"}, {"version", std::to_string(format)}});
  index_file.write(checked_json_file(index));
  std::error_code error;
  fs::remove(file_in(folder_, kRecordIndex), error);
  tensors.commit();
  index_file.commit();
  made_folder_ = false;
}

}  // namespace sparsight
