#include "sparsight/report/attack/read_attacks.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/report/attack/attack_example_files.h"
#include "sparsight/report/attack/attack_text.h"
#include "sparsight/report/format.h"
#include "sparsight/report/run/read_explanation.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAttacksFolder = "attacks";
constexpr size_t kMaxAttacks = 32;

bool file_is_there(const std::string& path) {
  std::error_code none;
  return fs::exists(fs::symlink_status(path, none));
}

// The names of the folders in attacks/ that are finished.
std::vector<std::string> attack_names(const std::string& run) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run + "/" + kAttacksFolder, error))
    if (file_is_there(entry.path().string() + "/result.json") || file_is_there(entry.path().string() + "/curve.json"))
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

// Takes the attack with the largest epsilon of a curve that has pictures. Folder names come from an untrusted file.
void take_from_curve(ShownAttack& attack, const std::string& run, const std::string& folder,
                     std::vector<std::string>& warnings) {
  const Json& points = member(attack.curve, "points");
  for (size_t i = points.is_array() ? std::min<size_t>(points.size(), 256) : 0; i-- > 0;) {
    const std::string below = text(points[i], "folder");
    if (below.empty() || below == ".." || below != fs::path(below).filename()) continue;
    attack.examples = read_attack_examples(run, folder + "/" + below, warnings);
    if (attack.examples.empty()) continue;
    attempt(warnings, [&] { attack.result = read_object(run, folder + "/" + below + "/result.json"); });
    return;
  }
}

}  // namespace

std::vector<ShownAttack> read_attacks(const std::string& run, std::vector<std::string>& warnings) {
  std::vector<ShownAttack> attacks;
  const std::vector<std::string> names = attack_names(run);
  if (names.size() > kMaxAttacks)
    warnings.push_back(cat("attacks/ has ", names.size(), " attacks; the first ", kMaxAttacks, " are shown"));
  for (size_t i = 0; i < std::min(names.size(), kMaxAttacks); ++i) {
    const std::string folder = std::string(kAttacksFolder) + "/" + names[i];
    ShownAttack attack;
    attack.name = printable(names[i]);
    attempt(warnings, [&] {
      if (file_is_there(run + "/" + folder + "/curve.json")) {
        attack.curve = read_object(run, folder + "/curve.json");
        take_from_curve(attack, run, folder, warnings);
      } else {
        attack.result = read_object(run, folder + "/result.json");
        attack.examples = read_attack_examples(run, folder, warnings);
      }
    });
    if (attack.result.is_object() || attack.curve.is_object()) attacks.push_back(std::move(attack));
  }
  return attacks;
}

Json read_autoattack(const std::string& path) {
  if (file_is_there(path + "/result.json")) return read_object(path, "result.json");
  std::vector<std::string> warnings, found;
  Json result;
  for (ShownAttack& attack : read_attacks(path, warnings))
    if (attack.curve.is_null() && text(member(attack.result, "attack"), "name") == "autoattack") {
      found.push_back(path + "/" + kAttacksFolder + "/" + attack.name);
      result = std::move(attack.result);
    }
  if (found.size() == 1) return result;
  if (found.empty())
    fail(printable(path), " has no finished AutoAttack in ", kAttacksFolder,
         "/; run sparsight attack, or give the folder of one", warnings.empty() ? "" : " (" + warnings.front() + ")");
  fail(printable(path), " has several AutoAttacks; give the folder of one: ", printable(join(found, " or ")));
}

Rows attack_overview_rows(const std::vector<ShownAttack>& attacks) {
  if (attacks.empty()) return {};
  Rows rows{{"attack", "norm", "epsilon", "images", "clean", "robust", "95 % CI", "success rate"}};
  std::vector<std::string> targets{"target"};  // of each row; "" where the attack is untargeted
  for (const ShownAttack& attack : attacks) {
    const auto add = [&](const Json& found, const Json& of, const std::string& epsilon) {
      targets.push_back(attack_target_text(of));
      const Json& robust = member(found, "robust_accuracy");
      rows.push_back({attack.name, text(member(of, "threat"), "norm"), epsilon,
                      grouped(static_cast<int64_t>(std::clamp(number(robust, "of").value_or(0), 0.0, 1e15))),
                      percent(number(member(found, "clean_accuracy"), "value")), percent(number(robust, "value")),
                      attack_interval_text(robust), percent(number(member(found, "success_rate"), "value"))});
    };
    if (!attack.curve.is_object())
      add(attack.result, attack.result, text(member(attack.result, "threat"), "given"));
    else if (const Json& points = member(attack.curve, "points"); points.is_array())
      for (const Json& point : points) add(point, attack.curve, text(point, "given"));
  }
  if (std::all_of(targets.begin() + 1, targets.end(), [](const std::string& target) { return target.empty(); }))
    return rows;
  for (size_t i = 0; i < rows.size(); ++i) rows[i].push_back(targets[i].empty() ? "-" : targets[i]);
  return rows;
}

}  // namespace sparsight
