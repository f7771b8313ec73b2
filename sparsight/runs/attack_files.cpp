#include "sparsight/runs/attack_files.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/models/routing_file.h"
#include "sparsight/report/attack_csv.h"

namespace sparsight {
namespace {

Batch recorded_batch(const AttackedBatch& images) {
  Batch batch;
  batch.labels = images.batch.labels.label;
  batch.domains = images.domains;
  batch.ids = images.ids;
  return batch;
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

at::Tensor fooled_by(const AttackPiece& piece, const AttackPlan& plan) {
  const at::Tensor fooled = clean_correct(piece) & ~attacked_correct(piece);
  const at::Tensor last = at::full_like(piece.stage, std::ssize(plan.stages) - 1);
  return at::where(fooled, at::where(piece.stage >= 0, piece.stage, last), at::full_like(piece.stage, -1));
}

AttackFiles::AttackFiles(const std::string& folder, const AttackPlan& plan)
    : folder_(folder),
      plan_(plan),
      records_(folder + "/records"),
      clean_records_(folder + "/clean_records"),
      pixels_(folder + "/adversarial.safetensors"),
      csv_("image,id,label,clean_prediction,prediction,fooled_by,norm,queries,misclassified_in_8_bits\n") {}

void AttackFiles::add(const AttackedBatch& images, const AttackPiece& piece, const PieceCheck& check) {
  const Batch batch = recorded_batch(images);
  records_.observe(batch, recorded_output(piece.attacked));
  clean_records_.observe(batch, recorded_output(piece.clean));
  routing_.add(piece.attacked.routings);
  clean_routing_.add(piece.clean.routings);
  const at::Tensor stage = fooled_by(piece, plan_), &label = images.batch.labels.label, &image = images.batch.image;
  for (const auto& [name, rows] :
       std::initializer_list<std::pair<const char*, at::Tensor>>{{"pixels", piece.pixels},
                                                                 {"image", image},
                                                                 {"label", label},
                                                                 {"stage", stage},
                                                                 {"queries", piece.queries},
                                                                 {"norm", piece.norm},
                                                                 {"clean_logits", piece.clean.logits},
                                                                 {"logits", piece.attacked.logits}})
    pixels_.append(name, rows);
  const at::Tensor clean = piece.clean.logits.argmax(1), attacked = piece.attacked.logits.argmax(1);
  const auto at_row = [](const at::Tensor& values, int64_t i) { return values[i].item<int64_t>(); };
  for (int64_t i = 0; i < label.size(0); ++i) {
    const int64_t by = at_row(stage, i);
    csv_ += cat(at_row(image, i), ",", attack_csv_text(images.ids[static_cast<size_t>(i)]), ",", at_row(label, i), ",",
                at_row(clean, i), ",", at_row(attacked, i), ",",
                by < 0 ? "" : attack_csv_text(plan_.stages.at(static_cast<size_t>(by)).name), ",",
                attack_csv_number(piece.norm[i].item<double>()), ",", at_row(piece.queries, i), ",",
                check.misclassified_in_8_bits[i].item<bool>() ? 1 : 0, "\n");
  }
}

void AttackFiles::commit(RecordSource source, const Json& result) {
  pixels_.commit({{"format", "sparsight-adversarial"}, {"version", "1"}, {"threat", to_text(plan_.threat)}});
  if (const Routings all = routing_.all(); !all.empty()) {
    write_routings(folder_ + "/routing.safetensors", all);
    write_routings(folder_ + "/clean_routing.safetensors", clean_routing_.all());
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
