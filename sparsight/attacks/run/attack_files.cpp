#include "sparsight/attacks/run/attack_files.h"

#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/label_sets.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/report/attack/attack_csv.h"

namespace sparsight {
namespace {

constexpr const char *kImagesFile = "/adversarial.safetensors", *kRoutingFile = "/routing.safetensors",
                     *kCleanRoutingFile = "/clean_routing.safetensors";

Batch recorded_batch(const AttackedBatch& images) {
  Batch batch;
  batch.labels = images.batch.labels.label;
  if (batch.labels.dim() == 2) {
    batch.label_sets = batch.labels;
    batch.labels = first_classes(batch.label_sets);
  }
  batch.domains = images.domains;
  batch.ids = images.ids;
  return batch;
}

std::vector<RoutedImage> routed_images(const Batch& batch) {
  std::vector<RoutedImage> images;
  for (size_t i = 0; i < batch.ids.size(); ++i)
    images.push_back(
        {batch.ids[i], batch.labels.const_data_ptr<int64_t>()[i], batch.domains.const_data_ptr<int64_t>()[i]});
  return images;
}

// The source that eval --save-routing writes.
Json routing_source(const RecordSource& source) {
  return {{"checkpoint", printable(source.checkpoint)},
          {"step", source.step},
          {"weights", source.weights},
          {"data", source.data.name},
          {"split", source.split},
          {"classes", printable_names(source.data.classes)},
          {"domains", printable_names(source.data.domains)}};
}

// safetensors as most programs read them have no bool.
at::Tensor saved_labels(const at::Tensor& label) { return label.dim() == 2 ? label.to(at::kByte) : label; }

// "3", or "0;3" of several.
std::string label_text(const at::Tensor& label) {
  if (label.dim() == 0) return std::to_string(label.item<int64_t>());
  std::string text;
  for (int64_t k = 0; k < label.size(0); ++k)
    if (label[k].item<bool>()) text += (text.empty() ? "" : ";") + std::to_string(k);
  return text;
}

// "" where there is none.
std::string distance_text(const at::Tensor& distance, int64_t i) {
  const double value = distance.defined() ? distance[i].item<double>() : std::numeric_limits<double>::infinity();
  return attack_csv_number(std::isfinite(value) ? Json(value) : Json());
}

ModelOutput recorded_output(const ModelVerdict& verdict) {
  ModelOutput output;
  output.logits = verdict.logits;
  for (const std::string& layer : verdict.layers) {
    const Routing& routing = verdict.routings.at(layer);
    if (routing.soft)
      output.soft_routings.push_back(*routing.soft);
    else
      output.routings.push_back(routing);
  }
  return output;
}

}  // namespace

at::Tensor fooled_by(const AttackShard& piece, const AttackPlan& plan) {
  const at::Tensor fooled = piece_success(piece).reached;
  const at::Tensor last = at::full_like(piece.stage, std::ssize(plan.stages) - 1);
  return at::where(fooled, at::where(piece.stage >= 0, piece.stage, last), at::full_like(piece.stage, -1));
}

AttackFiles::AttackFiles(const std::string& folder, const AttackPlan& plan)
    : folder_(folder),
      plan_(plan),
      records_(folder + "/records"),
      clean_records_(folder + "/clean_records"),
      pixels_(folder + kImagesFile),
      routing_(folder + kRoutingFile),
      clean_routing_(folder + kCleanRoutingFile),
      measured_(measures_distances(plan)),
      csv_("image,id,label,clean_prediction,prediction,fooled_by,norm,queries,misclassified_in_8_bits") {
  if (plan.targeted()) csv_ += ",target";
  csv_ += measured_ ? ",distance\n" : "\n";
}

void AttackFiles::add_images(const AttackShard& piece) {
  for (const auto& [name, rows] :
       std::initializer_list<std::pair<const char*, at::Tensor>>{{"pixels", piece.pixels},
                                                                 {"image", piece.batch.image},
                                                                 {"label", saved_labels(piece.batch.labels.label)},
                                                                 {"stage", fooled_by(piece, plan_)},
                                                                 {"queries", piece.queries},
                                                                 {"norm", piece.norm},
                                                                 {"clean_logits", piece.clean.logits},
                                                                 {"logits", piece.attacked.logits}})
    pixels_.append(name, rows);
  if (piece.target.defined()) pixels_.append("target", piece.target);
  if (piece.distance.defined()) pixels_.append("distance", piece.distance);
}

void AttackFiles::commit_images() {
  const std::string path = folder_ + kImagesFile;
  pixels_.commit({{"format", "sparsight-adversarial"}, {"version", "1"}, {"threat", to_text(plan_.threat)}});
  saved_.emplace(path);
}

at::Tensor AttackFiles::saved_pixels(int64_t first, int64_t last) const {
  SPARSIGHT_CHECK(saved_.has_value());
  return saved_->rows("pixels", first, last);
}

void AttackFiles::add(const AttackedBatch& images, const AttackShard& piece, const PieceCheck& check) {
  const Batch batch = recorded_batch(images);
  records_.observe(batch, recorded_output(piece.attacked));
  clean_records_.observe(batch, recorded_output(piece.clean));
  if (!piece.attacked.routings.empty()) {
    routed_ = true;
    routing_.add(piece.attacked.routings, routed_images(batch));
    clean_routing_.add(piece.clean.routings, routed_images(batch));
  }
  const at::Tensor stage = fooled_by(piece, plan_), &label = images.batch.labels.label, &image = images.batch.image;
  const at::Tensor clean = piece.clean.logits.argmax(1), attacked = piece.attacked.logits.argmax(1);
  const auto at_row = [](const at::Tensor& values, int64_t i) { return values[i].item<int64_t>(); };
  for (int64_t i = 0; i < label.size(0); ++i) {
    const int64_t by = at_row(stage, i);
    csv_ += cat(at_row(image, i), ",", attack_csv_text(images.ids[static_cast<size_t>(i)]), ",", label_text(label[i]),
                ",", at_row(clean, i), ",", at_row(attacked, i), ",",
                by < 0 ? "" : attack_csv_text(plan_.stages.at(static_cast<size_t>(by)).name), ",",
                attack_csv_number(piece.norm[i].item<double>()), ",", at_row(piece.queries, i), ",",
                check.misclassified_in_8_bits[i].item<bool>() ? 1 : 0);
    if (piece.target.defined()) csv_ += cat(",", at_row(piece.target, i));
    if (measured_) csv_ += "," + distance_text(piece.distance, i);
    csv_ += "\n";
  }
}

void AttackFiles::commit(RecordSource source, const Json& result) {
  if (routed_) {
    routing_.commit(routing_source(source));
    clean_routing_.commit(routing_source(source));
  }
  write_file_atomically(folder_ + "/images.csv", csv_);
  write_file_atomically(folder_ + "/stages.csv", attack_stages_csv(result.at("stages")));
  if (const Json& layers = result.at("routing"); !layers.empty())
    write_file_atomically(folder_ + "/routing.csv", attack_routing_csv(layers));
  records_.commit(source);
  source.settings.erase("attack");
  clean_records_.commit(source);
}

}  // namespace sparsight
