#include "sparsight/attacks/run/attack_curve.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/run/attack_plan.h"
#include "sparsight/attacks/run/attacked_run.h"
#include "sparsight/attacks/run/curve_warnings.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/dist/rank_zero.h"
#include "sparsight/eval/records.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"
#include "sparsight/io/safetensors_rows.h"
#include "sparsight/report/attack/attack_curve_page.h"
#include "sparsight/report/attack/attack_curve_text.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEpsilonFolders = "eps_";

// One epsilon of the list.
struct ListedAttack {
  AttackRequest request;
  ThreatModel threat;
  std::string folder;  // in that of the curve
};

std::vector<ListedAttack> listed_attacks(const AttackRequest& request, const std::string& folder) {
  std::vector<ListedAttack> attacks;
  for (const std::string& epsilon : listed_epsilons(request.epsilon)) {
    ListedAttack attack{request, {}, kEpsilonFolders + plain_name(epsilon)};
    attack.request.epsilon = epsilon;
    attack.request.out = (fs::path(folder) / attack.folder).string();
    attack.threat = plan_attack(attack.request).threat;
    attacks.push_back(std::move(attack));
  }
  std::ranges::stable_sort(attacks, {}, [](const ListedAttack& attack) { return attack.threat.epsilon; });
  for (size_t i = 1; i < attacks.size(); ++i)
    if (attacks[i].threat.epsilon == attacks[i - 1].threat.epsilon || attacks[i].folder == attacks[i - 1].folder)
      fail_usage("--eps lists ", printable(attacks[i - 1].request.epsilon), " and ",
                 printable(attacks[i].request.epsilon), ", which are the same; give each epsilon once");
  return attacks;
}

// Raises UsageError for a folder with anything but a curve.
void check_curve_folder(const std::string& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kEpsilonFolders) && !name.starts_with("curve."))
      fail_usage("cannot write attacks at several epsilons into ", printable(folder), ": it holds ", printable(name),
                 "; choose a new or empty folder with --out");
  }
}

// Folders that did not exist before, removed where they are still empty at the end: after a refused request.
class NewFolders {
 public:
  explicit NewFolders(const fs::path& folder) {
    std::error_code error;
    for (fs::path path = folder; !path.empty() && !fs::exists(path, error); path = path.parent_path())
      made_.push_back(path);
  }
  ~NewFolders() {
    std::error_code ignored;
    for (const fs::path& path : made_) fs::remove(path, ignored);
  }
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

 private:
  std::vector<fs::path> made_;
};

// [n] bool: classified correctly before and after, or what a targeted attack could have reached and did not.
at::Tensor robust_images(const std::string& folder, bool targeted) {
  const RecordColumns columns{.logits = false, .experts = false};
  const Records before = read_records(folder + "/clean_records", columns),
                after = read_records(folder + "/records", columns);
  if (!targeted) return before.correct() & after.correct();
  const at::Tensor target =
      SafetensorsRowReader(folder + "/adversarial.safetensors").rows("target", 0, after.label.size(0));
  return after.label.ne(target) & after.prediction.ne(target);
}

// What the curve keeps of the result at one epsilon.
Json curve_point(const ListedAttack& attack, const Json& result) {
  Json point{
      {"epsilon", attack.threat.epsilon}, {"given", printable(attack.request.epsilon)}, {"folder", attack.folder}};
  for (const char* key : {"clean_accuracy", "robust_accuracy", "success_rate", "prediction_change", "accuracy_after",
                          "loss", "stages", "queries", "gradients", "seconds", "gradient_counts", "drop_rate",
                          "moved_images", "random_noise", "routing", "warnings"})
    point[key] = result.value(key, Json());
  for (const char* key : {"fdr_at_1", "distances"})
    if (result.contains(key)) point[key] = result[key];
  return point;
}

// What all of its attacks share.
Json curve_description(const AttackRequest& request, const Json& result) {
  Json curve{{"format", "sparsight-attack-curve"}, {"version", 1}};
  for (const char* key : {"model", "data", "threat", "attack", "exact", "precision", "environment", "images", "batch",
                          "peak_bytes_per_image", "images_share_capacity", "images_choose_together",
                          "images_share_objective", "pixels_clipped", "target", "notes"})
    curve[key] = result.value(key, Json());
  curve["threat"].erase("epsilon");
  curve["attack"].erase("epsilon");
  curve["threat"]["given"] = cat(printable(request.epsilon), " of pixels in ", request.range);
  return curve;
}

}  // namespace

std::vector<std::string> listed_epsilons(const std::string& text) {
  std::vector<std::string> list;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    list.push_back(text.substr(begin, comma - begin));
    if (list.size() > 1 && list.back().empty())
      fail_usage("--eps has an empty entry in \"", printable(text), "\"; give it as 1/255,2/255,4/255");
    begin = comma + 1;
  }
  return list;
}

Json run_attack_curve(const AttackRequest& request, const OnAttackResult& on_result, dist::Group& group) {
  const std::string folder = attack_folder(request);
  const std::vector<ListedAttack> attacks = listed_attacks(request, folder);
  dist::from_rank_zero(group, [&] {
    check_curve_folder(folder);
    return std::string();
  });
  const ImageShape shape = load_attacked(request, plan_attack(attacks.back().request)).loaded.shape;
  const int64_t values = shape.channels * shape.height * shape.width;
  check_radius(attacks.back().threat, values);
  std::optional<NewFolders> made;
  if (group.leads()) made.emplace(folder);
  const bool targeted = plan_attack(attacks.back().request).targeted();
  Json curve, points = Json::array();
  std::vector<CurveAttack> results;
  for (const ListedAttack& attack : attacks) {
    log_info("epsilon ", printable(attack.request.epsilon), " (", results.size() + 1, " of ", attacks.size(), ")");
    const Json result = run_attack(attack.request, {}, group);
    if (!group.leads()) continue;
    if (curve.is_null()) curve = curve_description(request, result);
    points.push_back(curve_point(attack, result));
    results.push_back({attack.request.epsilon, attack.threat.epsilon, result.value("gradients", int64_t{0}) > 0,
                       robust_images(attack.request.out, targeted)});
  }
  if (!group.leads()) return {};
  const double large = large_epsilon(attacks.back().threat.norm, values);
  curve["points"] = std::move(points);
  curve["warnings"] = curve_warnings(results, large, targeted);
  if (!curve["notes"].is_array()) curve["notes"] = Json::array();
  if (attacks.back().threat.epsilon < large && !targeted)
    curve["notes"].push_back(cat("no epsilon is as large as ", large,
                                 ", where every image can be made grey: that the "
                                 "attack then fools all of them was not checked"));
  if (on_result) on_result(curve);
  write_file_atomically(folder + "/curve.csv", attack_curve_csv(curve));
  write_file_atomically(folder + "/curve.html", attack_curve_page(curve));
  write_file_atomically(folder + "/curve.json", checked_json_file(curve));
  return curve;
}

Json run_attack_curve(const AttackRequest& request, const OnAttackResult& on_result) {
  dist::Group alone;
  return run_attack_curve(request, on_result, alone);
}

}  // namespace sparsight
