#include "sparsight/papers/pmoe/figures/wrn_data.h"

#include <nlohmann/json.hpp>

#include "sparsight/reproduce/data_choice.h"

namespace sparsight::pmoe {
namespace {

const DataChoice kCeleba{"celeba", "planted glyphs for CelebA"};
const DataChoice kCifar{"cifar10", "glyphs for CIFAR-10"};
const DataChoice kPlants{"plants", "drawn textures for ImageNet's plants"};

Json faces(WrnData data, const WrnDataSize& size, const FigureRun& run, double correlation) {
  const bool spurious = data == WrnData::spurious_hair;
  if (!run.data.empty()) {
    Json section = {
        {"name", "celeba"}, {"root", real_folder(kCeleba, run)}, {"train", size.train}, {"test", size.test}};
    section["task"] = spurious ? "spurious_hair" : data == WrnData::smiling ? "smiling" : "smiling_glasses";
    if (spurious) section["correlation"] = correlation, section["cells"] = "capped";
    return section;
  }
  return {{"name", "planted"},
          {"classes", data == WrnData::smiling_glasses ? 4 : 2},
          {"side", face_side(run.scale)},
          {"correlation", spurious ? correlation : 0.5},
          {"train", size.train},
          {"validation", 1},
          {"test", size.test > 0 ? size.test : 2000}};
}

Json pictures(WrnData data, const WrnDataSize& size, const FigureRun& run) {
  const bool real = !run.data.empty();
  const Json counts = {{"train", size.train}, {"test", size.test}};
  Json section;
  if (data != WrnData::cifar10) {
    section = counts;
    section["name"] = data == WrnData::cifar_noise ? "cifar_noise" : "cifar_vehicles";
    section["source"] = real ? "cifar10" : "glyphs";
    if (real) section["root"] = real_folder(kCifar, run);
    if (data == WrnData::cifar_noise) section["backgrounds"] = real ? real_folder(kPlants, run) : "synthetic";
  } else if (real) {
    section = {{"name", "cifar10"},
               {"root", real_folder(kCifar, run)},
               {"validation", 0},
               {"train_limit", size.train},
               {"test_limit", size.test}};
  } else {
    section = counts;
    section.update({{"name", "glyphs"},
                    {"classes", 10},
                    {"super_classes", 0},
                    {"validation", 1},
                    {"test", size.test > 0 ? size.test : 10000}});
  }
  return section;
}

}  // namespace

bool of_faces(WrnData data) {
  return data == WrnData::smiling || data == WrnData::spurious_hair || data == WrnData::smiling_glasses;
}

int64_t face_side(Scale scale) { return scale == Scale::paper ? 64 : scale == Scale::small ? 48 : 32; }

std::vector<DataChoice> wrn_choices(WrnData data) {
  if (of_faces(data)) return {kCeleba};
  if (data == WrnData::cifar_noise) return {kCifar, kPlants};
  return {kCifar};
}

std::string wrn_needs(WrnData data) {
  if (of_faces(data)) return "CelebA";
  return data == WrnData::cifar_noise ? "CIFAR-10 and photographs of plants" : "CIFAR-10";
}

void set_data(Json& sections, WrnData data, const WrnDataSize& size, const FigureRun& run, double correlation) {
  sections["data"] = of_faces(data) ? faces(data, size, run, correlation) : pictures(data, size, run);
  if (!of_faces(data) || run.data.empty()) return;
  const int64_t side = face_side(run.scale);
  const Json steps = {{{"op", "center_crop"}, {"size", 178}}, {{"op", "resize"}, {"size", Json::array({side, side})}}};
  sections["transforms"] = {{"train", steps}, {"eval", steps}};
}

}  // namespace sparsight::pmoe
