#include "sparsight/report/attack/attack_example_files.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "sparsight/core/json_fields.h"
#include "sparsight/core/limits.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/report/run/read_explanation.h"
#include "sparsight/report/run/run_file.h"

namespace sparsight {
namespace {

constexpr const char *kExampleFolder = "/examples", *kExampleIndex = "/examples.json";
constexpr size_t kMaxExamples = 64;

// The pictures of an example, and the endings of their files' names.
constexpr std::pair<const char*, std::string AttackExample::*> kPictures[] = {
    {"clean", &AttackExample::clean},
    {"attacked", &AttackExample::attacked},
    {"change", &AttackExample::change},
    {"clean_experts", &AttackExample::clean_experts},
    {"attacked_experts", &AttackExample::attacked_experts}};

std::string attack_picture_name(size_t index, const char* kind) {
  char name[64];
  std::snprintf(name, sizeof name, "/%03zu_%s.png", index, kind);
  return name;
}

}  // namespace

void write_attack_examples(const std::string& folder, const std::vector<AttackExample>& examples) {
  if (examples.empty()) return;
  const std::string path = folder + kExampleFolder;
  create_folder(path);
  Json list = Json::array();
  for (size_t i = 0; i < examples.size(); ++i) {
    const AttackExample& example = examples[i];
    for (const auto& [kind, picture] : kPictures)
      if (const std::string& png = example.*picture; !png.empty())
        write_file_atomically(path + attack_picture_name(i, kind), png);
    list.push_back({{"id", example.id},
                    {"label", example.label},
                    {"prediction", example.prediction},
                    {"fooled_by", example.stage},
                    {"norm", example.norm},
                    {"magnification", example.magnification},
                    {"experts", !example.clean_experts.empty()}});
  }
  write_file_atomically(path + kExampleIndex, json_text({{"examples", std::move(list)}}, 2) + "\n");
}

std::vector<AttackExample> read_attack_examples(const std::string& run, const std::string& name,
                                                std::vector<std::string>& warnings) {
  std::vector<AttackExample> examples;
  const std::string folder = name + kExampleFolder;
  std::error_code none;
  if (!std::filesystem::exists(std::filesystem::symlink_status(run + "/" + folder + kExampleIndex, none))) return {};
  Json index;
  attempt(warnings, [&] { index = read_object(run, folder + kExampleIndex); });
  const Json& list = member(index, "examples");
  for (size_t i = 0; list.is_array() && i < std::min(list.size(), kMaxExamples); ++i) {
    AttackExample example;
    example.id = text(list[i], "id");
    example.label = text(list[i], "label");
    example.prediction = text(list[i], "prediction");
    example.stage = text(list[i], "fooled_by");
    example.norm = number(list[i], "norm").value_or(0);
    example.magnification = number(list[i], "magnification").value_or(1);
    const bool experts = member(list[i], "experts") == Json(true);
    for (const auto& [kind, picture] : kPictures)
      if (experts || (picture != &AttackExample::clean_experts && picture != &AttackExample::attacked_experts))
        attempt(warnings, [&] {
          example.*picture = read_run_file(run, folder + attack_picture_name(i, kind), kMaxPictureBytes);
        });
    examples.push_back(std::move(example));
  }
  return examples;
}

}  // namespace sparsight
