// The files of a finished attack, written piece by piece in bounded memory: first the images, which are then checked as
// anyone would read them, then the rest together (docs/attacks.md). Letters: moe/axes.md.
#pragma once

#include <optional>
#include <string>

#include "sparsight/attacks/run/attack_check.h"
#include "sparsight/eval/record_writer.h"
#include "sparsight/io/safetensors_rows.h"
#include "sparsight/models/routing_record.h"

namespace sparsight {

//   records/, clean_records/   evaluation records of attacked and clean images: sparsight compare reads them
//   adversarial.safetensors    pixels [n,C,H,W] fp32 (fp64 with that precision), image, label, stage, queries [n]
//   int64, norm [n] fp64,      distance [n] fp64 of attacks that measure it, infinite without one,
//                              clean_logits, logits [n,K] of the same type; of a targeted attack target [n] int64
//   routing.safetensors, clean_routing.safetensors   every decision of the MoE layers, as eval --save-routing writes,
//                                                    without logits
//   images.csv, stages.csv, routing.csv   tables of the images, of the attacks and of the MoE layers, if there are any
class AttackFiles {
 public:
  // folder: exists.
  AttackFiles(const std::string& folder, const AttackPlan& plan);
  // First of all pieces in order, then commit_images(): adversarial.safetensors.
  void add_images(const AttackShard& piece);
  void commit_images();
  // [B,C,H,W]: images first .. last - 1 as they are in adversarial.safetensors.
  at::Tensor saved_pixels(int64_t first, int64_t last) const;

  // Then of all pieces in order: the rest.
  void add(const AttackedBatch& images, const AttackShard& piece, const PieceCheck& check);
  // source: of the records. result: has "stages" and "routing" of AttackSummary::json().
  void commit(RecordSource source, const Json& result);

 private:
  std::string folder_;
  AttackPlan plan_;
  RecordWriter records_, clean_records_;
  SafetensorsRowWriter pixels_;
  std::optional<SafetensorsRowReader> saved_;  // once they are committed
  RoutingRecordWriter routing_, clean_routing_;
  bool routed_ = false;  // whether the model has MoE layers
  bool measured_;        // whether the attack measures distances
  std::string csv_;
};

// [B] int64: the stage that succeeded on each image by its last pass, -1 for none. An image on which only the last pass
// finds a success counts for the last stage.
at::Tensor fooled_by(const AttackShard& piece, const AttackPlan& plan);

}  // namespace sparsight
