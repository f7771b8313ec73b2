// Pieces as folders: images.safetensors with a description in its metadata, and the routings of clean and attacked
// images as eval --save-routing writes them.

#include "sparsight/attacks/run/attack_shard.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_folder.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/models/routing_file.h"

namespace sparsight {
namespace {

constexpr const char *kPieceTensors = "/images.safetensors", *kCleanRouting = "/clean_routing.safetensors",
                     *kAttackedRouting = "/routing.safetensors";

Json piece_description(const AttackShard& piece) {
  Json stages = Json::array();
  for (const StageResult& stage : piece.stages)
    stages.push_back({{"name", stage.name},
                      {"robust_before", stage.robust_before},
                      {"gained", stage.gained},
                      {"queries", stage.cost.queries},
                      {"gradients", stage.cost.gradients},
                      {"seconds", stage.seconds}});
  return {{"checksum", piece.checksum},
          {"layers", piece.clean.layers},
          {"stages", std::move(stages)},
          {"queries", piece.cost.queries},
          {"gradients", piece.cost.gradients},
          {"gradient_images", piece.gradients.images},
          {"zero_gradients", piece.gradients.zero},
          {"not_finite_gradients", piece.gradients.not_finite}};
}

int64_t piece_count(const Json& description, const char* key) {
  const double value = number(description, key).value_or(0);
  return value >= 0 && value < 1e15 ? static_cast<int64_t>(value) : 0;
}

void read_description(AttackShard& piece, const Json& description) {
  piece.checksum = text(description, "checksum");
  for (const Json& layer : member(description, "layers"))
    if (layer.is_string()) piece.clean.layers.push_back(layer.get<std::string>());
  piece.attacked.layers = piece.clean.layers;
  for (const Json& stage : member(description, "stages"))
    piece.stages.push_back({text(stage, "name"),
                            piece_count(stage, "robust_before"),
                            piece_count(stage, "gained"),
                            {piece_count(stage, "queries"), piece_count(stage, "gradients")},
                            number(stage, "seconds").value_or(0)});
  piece.cost = {piece_count(description, "queries"), piece_count(description, "gradients")};
  piece.gradients = {piece_count(description, "gradient_images"), piece_count(description, "zero_gradients"),
                     piece_count(description, "not_finite_gradients")};
}

// Raises Error for values that no attack writes.
void check_values(const AttackShard& piece, const PieceShape& shape) {
  const size_t stages = shape.stages;
  const auto all = [](const at::Tensor& holds) { return holds.all().item<bool>(); };
  if (piece.stages.size() != stages) fail("it has ", piece.stages.size(), " stages, not ", stages);
  if (!all(at::isfinite(piece.norm) & (piece.norm >= 0))) fail("tensor norm has values that are no distances");
  if (piece.distance.defined() && !all(piece.distance >= 0)) fail("tensor distance has values that are no distances");
  if (!all(at::isfinite(piece.pixels))) fail("tensor pixels has values that are not finite");
  if (!all((piece.stage >= -1) & (piece.stage < static_cast<int64_t>(stages))))
    fail("tensor stage has numbers of no stage");
  if (!all(piece.queries >= 0)) fail("tensor queries has numbers below 0");
  if (shape.targeted && !all((piece.target >= 0) & (piece.target < shape.classes)))
    fail("tensor target has numbers of no class");
}

bool are_alike(const Routing& a, const Routing& b) {
  return a.experts == b.experts && a.per_token == b.per_token && a.layout.per_image == b.layout.per_image &&
         a.layout.prefix == b.layout.prefix && (a.soft != nullptr) == (b.soft != nullptr) &&
         (!a.soft || a.soft->slots == b.soft->slots);
}

}  // namespace

void write_piece(const std::string& folder, const AttackShard& piece) {
  AtomicFolder out(folder);
  TensorFile file;
  file.tensors = {{"pixels", piece.pixels},
                  {"stage", piece.stage},
                  {"norm", piece.norm},
                  {"queries", piece.queries},
                  {"clean_logits", piece.clean.logits},
                  {"logits", piece.attacked.logits}};
  if (piece.target.defined()) file.tensors.emplace_back("target", piece.target);
  if (piece.distance.defined()) file.tensors.emplace_back("distance", piece.distance);
  file.metadata = {{"piece", json_text(piece_description(piece))}};
  write_safetensors(out.aside() + kPieceTensors, file);
  if (!piece.clean.routings.empty()) {
    write_routings(out.aside() + kCleanRouting, piece.clean.routings);
    write_routings(out.aside() + kAttackedRouting, piece.attacked.routings);
  }
  out.commit();
}

AttackShard read_piece(const std::string& folder, const PieceShape& shape) {
  const int64_t images = shape.pixels.at(0);
  const auto damaged = [&](const std::string& why) {
    fail("the saved piece ", printable(folder), " of the attack is damaged (", why,
         "); remove that folder and run the same command again");
  };
  AttackShard piece;
  try {
    TensorFile file = read_safetensors(folder + kPieceTensors);
    std::map<std::string, at::Tensor> found(file.tensors.begin(), file.tensors.end());
    const auto take = [&](const char* name, at::ScalarType type, const std::vector<int64_t>& sizes) {
      const auto entry = found.find(name);
      if (entry == found.end() || entry->second.scalar_type() != type ||
          entry->second.sizes() != at::IntArrayRef(sizes))
        fail("tensor ", name, " is missing or of another shape");
      return entry->second;
    };
    const at::ScalarType real =
        found.contains("pixels") && found["pixels"].scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    piece.pixels = take("pixels", real, shape.pixels);
    piece.stage = take("stage", at::kLong, {images});
    piece.norm = take("norm", at::kDouble, {images});
    piece.queries = take("queries", at::kLong, {images});
    if (shape.measured) piece.distance = take("distance", at::kDouble, {images});
    piece.clean.logits = take("clean_logits", real, {images, shape.classes});
    piece.attacked.logits = take("logits", real, {images, shape.classes});
    read_description(piece, parse_json_object(file.metadata["piece"], "its description"));
    if (shape.targeted) piece.target = take("target", at::kLong, {images});
    check_values(piece, shape);
    if (!piece.clean.layers.empty()) {
      piece.clean.routings = read_routings(folder + kCleanRouting);
      piece.attacked.routings = read_routings(folder + kAttackedRouting);
    }
  } catch (const Error& error) {
    damaged(error.what());
  }
  for (const std::string& layer : piece.clean.layers)
    for (const Routings* routings : {&piece.clean.routings, &piece.attacked.routings})
      if (!routings->contains(layer) || routings->at(layer).layout.images != images) damaged("routing of " + layer);
  for (const std::string& layer : piece.clean.layers)
    if (!are_alike(piece.clean.routings.at(layer), piece.attacked.routings.at(layer)))
      damaged("the routings of " + printable(layer) + " before and after the attack are of different sizes");
  return piece;
}

}  // namespace sparsight
