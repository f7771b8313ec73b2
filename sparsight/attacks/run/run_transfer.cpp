#include "sparsight/attacks/run/run_transfer.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/attacked_image_model.h"
#include "sparsight/attacks/check_perturbation.h"
#include "sparsight/attacks/run/attack_identity.h"
#include "sparsight/attacks/run/attack_summary.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/path_text.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/progress.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"
#include "sparsight/io/safetensors.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTransferBytes = 16 << 20;
constexpr double kPixelRounding = 1e-5;  // of an image in fp32, in the range 0..1
constexpr double kValueRounding = 1e-6;  // of each of its values, whose sum the norm l1 is

AttackRequest attack_on_source(const AttackRequest& request, const std::string& source) {
  AttackRequest attack = request;
  attack.path = source;
  attack.weights.clear();
  if (!request.out.empty()) attack.out = request.out + "/source";
  return attack;
}

struct FooledImages {
  at::Tensor pixels, label;  // [n,C,H,W], [n]
  at::Tensor target = {};    // [n] of a targeted attack
};

FooledImages read_fooled(const std::string& folder, int64_t images, const ImageShape& shape, bool targeted) {
  const std::string path = folder + "/adversarial.safetensors";
  const TensorFile file = read_safetensors(path);
  std::map<std::string, at::Tensor> found(file.tensors.begin(), file.tensors.end());
  if (!found.contains("pixels") || !found.contains("label") || !found["pixels"].is_floating_point() ||
      found["label"].scalar_type() != at::kLong || found["label"].sizes() != at::IntArrayRef({images}))
    fail(printable(path), " has no images with one label each; attack the source again");
  const std::vector<int64_t> wanted{images, shape.channels, shape.height, shape.width};
  if (found["pixels"].sizes() != at::IntArrayRef(wanted))
    fail("the images of the attacked model are ", found["pixels"].sizes(), ", the other model takes ",
         at::IntArrayRef(wanted));
  if (!targeted) return {found["pixels"], found["label"]};
  const at::Tensor target = found["target"];
  if (!target.defined() || target.scalar_type() != at::kLong || target.sizes() != at::IntArrayRef({images}))
    fail(printable(path), " has no target of each image; attack the source again");
  return {found["pixels"], found["label"], target};
}

// The evaluated model on the images as they are and attacked.
class Evaluated {
 public:
  Evaluated(const AttackRequest& request, const AttackPlan& plan)
      : plan_(plan),
        attacked_(load_attacked(request, plan)),
        images_(attacked_.loaded, request),
        model_(attacked_.loaded.model, {.mode = mode(request),
                                        .seed = request.seed,
                                        .program = attacked_.program,
                                        .only_program = !request.weights.empty()}),
        batch_(request.exact       ? 1
               : request.batch > 0 ? request.batch
                                   : shared_batch(attacked_.loaded)) {}

  const AttackedRun& attacked() const { return attacked_; }
  const AttackedImages& images() const { return images_; }

  Json evaluate(const FooledImages& fooled) {
    Progress progress("transfer", images_.size(), "images");
    for (int64_t first = 0; first < images_.size(); first += batch_) {
      if (interrupted()) fail("interrupted; run the same command again");
      const int64_t last = std::min(images_.size(), first + batch_);
      const auto part = [&](const at::Tensor& all) { return all.defined() ? all.slice(0, first, last) : all; };
      add(images_.read(first, last).batch, {part(fooled.pixels), part(fooled.label), part(fooled.target)});
      progress.update(last);
    }
    progress.finish();
    return {{"clean_accuracy", share_json(clean_, images_.size())},
            {"robust_accuracy", share_json(robust_, images_.size())},
            {"success_rate", share_json(reached_, counted_)},
            {"accuracy_after", share_json(after_, images_.size())},
            {"routing", routing_.layers()}};
  }
  // Targeted: the share that the model takes for the target before the attack.
  Json predicted_clean() const { return share_json(at_target_before_, counted_); }

 private:
  static ForwardMode mode(const AttackRequest& request) {
    ForwardMode mode = ForwardMode::evaluation();
    mode.noise = request.noise;
    return mode;
  }

  void add(const AttackBatch& batch, const FooledImages& fooled) {
    const at::Tensor pixels = fooled.pixels.to(batch.pixels.scalar_type()), &label = fooled.label;
    const double summed = plan_.threat.norm == Norm::l1 ? static_cast<double>(batch.pixels[0].numel()) : 0;
    const double bound = plan_.threat.epsilon * (1 + kPixelRounding) + kPixelRounding + summed * kValueRounding;
    // Not within the bound rather than beyond it: NaN is neither.
    if (!label.equal(batch.labels.label) || !(largest_perturbation(pixels, batch.pixels, plan_.threat.norm) <= bound))
      fail(
          "the two models get different images: their data, split and evaluation transforms must be the same, but for "
          "the normalisation");
    const ModelVerdict clean = model_verdict(model_, batch, batch.pixels, batch_),
                       attacked = model_verdict(model_, batch, pixels, batch_);
    const at::Tensor before = classified_correctly(clean.logits, label),
                     after = classified_correctly(attacked.logits, label);
    clean_ += before.sum().item<int64_t>();
    after_ += after.sum().item<int64_t>();
    robust_ += (before & after).sum().item<int64_t>();
    const auto [counted, reached] = attack_success(clean.logits, attacked.logits, label, fooled.target);
    counted_ += counted.sum().item<int64_t>();
    reached_ += reached.sum().item<int64_t>();
    if (fooled.target.defined())
      at_target_before_ += (counted & clean.logits.argmax(1).eq(fooled.target)).sum().item<int64_t>();
    routing_.add(listed(clean), listed(attacked), pixels.ne(batch.pixels).flatten(1).any(1));
  }

  static std::vector<Routing> listed(const ModelVerdict& verdict) {
    std::vector<Routing> routings;
    for (const std::string& layer : verdict.layers)
      if (const auto found = verdict.routings.find(layer); found != verdict.routings.end() && !found->second.soft)
        routings.push_back(found->second);
    return routings;
  }

  const AttackPlan& plan_;
  AttackedRun attacked_;
  AttackedImages images_;
  AttackedImageModel model_;
  int64_t batch_;
  AttackedRouting routing_;
  int64_t clean_ = 0, robust_ = 0, after_ = 0, counted_ = 0, reached_ = 0, at_target_before_ = 0;
};

// A folder holds the result of one pair of models and one attack.
void check_earlier(const std::string& file, const Json& result) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return;
  std::string problem;
  auto earlier = try_parse_checked_object(read_file(file, kMaxTransferBytes), problem);
  if (earlier && earlier->contains("attack")) add_missing_settings((*earlier)["attack"]);
  const auto differs = [&](const char* key) { return member(*earlier, key) != result.at(key); };
  const auto classes = [](const Json& json) { return member(member(json, "data"), "classes"); };
  if (!earlier || classes(*earlier) != classes(result) || differs("attack") || differs("threat") || differs("images") ||
      text(member(*earlier, "source"), "fingerprint") != text(result.at("source"), "fingerprint"))
    fail(printable(file), " is of another attack or of another source; choose another folder with --out");
}

}  // namespace

std::string transfer_folder(const AttackRequest& request, const std::string& source) {
  if (!request.out.empty()) return request.out;
  return attack_folder(request) + "_from_" + plain_name(fs::path(without_slashes_at_end(source)).filename().string());
}

Json run_transfer(const AttackRequest& request, const std::string& source, const OnAttackResult& on_result,
                  dist::Group& group) {
  const AttackPlan plan = plan_attack(request);
  Evaluated evaluated(request, plan);  // first: what is wrong with it is not to be found after hours of the attack
  const AttackRequest on_source = attack_on_source(request, source);
  const Json made = run_attack(on_source, {}, group);
  if (!group.leads()) return {};
  const AttackedImages& images = evaluated.images();
  Json result = attack_description(request, plan, evaluated.attacked(), images);
  result["format"] = "sparsight-transfer";
  result["version"] = 1;
  result["images"] = images.size();
  result["attack"] = member(made, "attack");
  result["source"] = {{"path", printable(source)},
                      {"fingerprint", text(member(made, "model"), "fingerprint")},
                      {"attack", printable(attack_folder(on_source))}};
  for (const char* key : {"clean_accuracy", "robust_accuracy", "success_rate"})
    result["source"][key] = member(made, key);
  const std::string folder = transfer_folder(request, source), file = folder + "/transfer.json";
  check_earlier(file, result);
  const bool targeted = plan.targeted();
  result.update(evaluated.evaluate(
      read_fooled(attack_folder(on_source), images.size(), evaluated.attacked().loaded.shape, targeted)));
  if (targeted) {
    result["target"] = member(made, "target");
    result["target"]["predicted_clean"] = evaluated.predicted_clean();
  }
  if (on_result) on_result(result);
  create_folder(folder);
  write_file_atomically(file, checked_json_file(result));
  return result;
}

}  // namespace sparsight
