#include "sparsight/reproduce/pmoe/wrn_data.h"

#include <filesystem>

#include <nlohmann/json.hpp>

namespace sparsight {
namespace {

bool there(const FigureRun& run, const std::string& file) {
  return !run.data.empty() && std::filesystem::exists(run.data + "/" + file);
}
bool has_celeba(const FigureRun& run) { return there(run, "celeba/list_attr_celeba.txt"); }
bool has_cifar(const FigureRun& run) {
  return there(run, "cifar10/data_batch_1.bin") || there(run, "cifar10/cifar-10-batches-bin/data_batch_1.bin");
}
bool has_plants(const FigureRun& run) { return there(run, "plants"); }

Json faces(WrnData data, const WrnDataSize& size, const FigureRun& run, double correlation) {
  const bool spurious = data == WrnData::spurious_hair;
  if (has_celeba(run)) {
    Json celeba = {{"name", "celeba"}, {"root", run.data + "/celeba"}, {"train", size.train}, {"test", size.test}};
    celeba["task"] = spurious ? "spurious_hair" : data == WrnData::smiling ? "smiling" : "smiling_glasses";
    if (spurious) celeba["correlation"] = correlation, celeba["cells"] = "capped";
    return celeba;
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
  const bool real = has_cifar(run);
  const Json counts = {{"train", size.train}, {"test", size.test}};
  Json section;
  if (data != WrnData::cifar10) {
    section = counts;
    section["name"] = data == WrnData::cifar_noise ? "cifar_noise" : "cifar_vehicles";
    section["source"] = real ? "cifar10" : "glyphs";
    if (real) section["root"] = run.data + "/cifar10";
    if (data == WrnData::cifar_noise) section["backgrounds"] = has_plants(run) ? run.data + "/plants" : "drawn";
  } else if (real) {
    section = {{"name", "cifar10"},
               {"root", run.data + "/cifar10"},
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

std::string wrn_stand_in(WrnData data, const FigureRun& run) {
  if (of_faces(data)) return has_celeba(run) ? "" : "planted glyphs for CelebA";
  if (!has_cifar(run)) return "glyphs for CIFAR-10";
  if (data == WrnData::cifar_noise && !has_plants(run)) return "drawn textures for ImageNet's plants";
  return "";
}

void set_data(Json& sections, WrnData data, const WrnDataSize& size, const FigureRun& run, double correlation) {
  sections["data"] = of_faces(data) ? faces(data, size, run, correlation) : pictures(data, size, run);
  if (!of_faces(data) || !has_celeba(run)) return;
  const int64_t side = face_side(run.scale);
  const Json steps = {{{"op", "center_crop"}, {"size", 178}}, {{"op", "resize"}, {"size", Json::array({side, side})}}};
  sections["transforms"] = {{"train", steps}, {"eval", steps}};
}

}  // namespace sparsight
