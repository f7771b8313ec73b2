#include "sparsight/attacks/run/run_attack.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/attacked_image_model.h"
#include "sparsight/attacks/cascade_warnings.h"
#include "sparsight/attacks/random_start.h"
#include "sparsight/attacks/register_attacks.h"
#include "sparsight/attacks/run/attack_batch_size.h"
#include "sparsight/attacks/run/attack_examples.h"
#include "sparsight/attacks/run/attack_files.h"
#include "sparsight/attacks/run/attack_folder.h"
#include "sparsight/attacks/run/attack_identity.h"
#include "sparsight/attacks/run/attack_summary.h"
#include "sparsight/core/checksum.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/private_folder.h"
#include "sparsight/core/progress.h"
#include "sparsight/dist/rank_zero.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/packed_folder.h"
#include "sparsight/report/attack/attack_example_files.h"
#include "sparsight/report/attack/attack_page.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPieceImages = 64;    // about how many images are saved together
constexpr int64_t kCheckedImages = 32;  // the first ones, on which the model is checked before the attack

std::shared_ptr<Attack> stage_attack(const CascadeStage& stage, const AttackContext& context = {}) {
  return attacks().make(stage.attack, stage.settings, stage.name, context);
}

bool clips_all(const AttackPlan& plan) {
  return std::ranges::all_of(plan.stages,
                             [](const CascadeStage& stage) { return stage_attack(stage)->clips_pixels(); });
}

bool couples_images(const AttackPlan& plan) {
  return std::ranges::any_of(plan.stages,
                             [](const CascadeStage& stage) { return stage_attack(stage)->couples_images(); });
}

bool has_router_losses(const AttackPlan& plan) {
  return std::ranges::any_of(plan.stages, [](const CascadeStage& stage) {
    return !stage.settings.value("router_losses", Json::array()).empty();
  });
}

// The first error among several steps, after which the others are left out.
class FirstError {
 public:
  void unless_failed(const std::function<void()>& step) {
    if (failed()) return;
    try {
      step();
    } catch (const Error&) {
      error_ = std::current_exception();
    }
  }
  bool failed() const { return error_ != nullptr; }
  void rethrow() const {
    if (failed()) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
};

// One attack from its request to its result.
class AttackWork {
 public:
  AttackWork(const AttackRequest& request, dist::Group& group)
      : request_(request),
        group_(group),
        plan_(plan_attack(request)),
        attacked_(load_attacked(request, plan_)),
        loaded_(attacked_.loaded),
        images_(loaded_, request),
        identity_(identity_checked()),
        inner_(loaded_.model, {.mode = mode(),
                               .seed = request.seed,
                               .program = attacked_.program,
                               .only_program = !request.weights.empty()}),
        model_(inner_, request.exact) {
    dist::check_same(group, "attack", json_text(identity_));
  }

  Json run(const OnAttackResult& on_result) {
    if (!open_folder(on_result)) return result_;
    check_model();
    batch_ = std::stoll(dist::from_rank_zero(group_, [this] {
      begin_if_new();
      return std::to_string(folder_->batch());
    }));
    attack_shards();
    Json result;
    if (group_.leads()) result = report(on_result);
    while (group_.any(false)) {  // rank 0 is busy with its report, for longer than a rank may be late
    }
    return result;
  }

 private:
  ForwardMode mode() const {
    ForwardMode mode = ForwardMode::evaluation();
    mode.noise = request_.noise;
    mode.losses = has_router_losses(plan_);
    return mode;
  }

  // Whether there is anything to do. A finished attack has its result.
  bool open_folder(const OnAttackResult& on_result) {
    const std::string finished = dist::from_rank_zero(group_, [this] {
      folder_.emplace(attack_folder(request_), identity_);
      const std::optional<Json> result = folder_->result();
      if (result) result_ = *result;
      return std::string(result ? "finished" : "");
    });
    if (finished.empty()) return true;
    if (group_.leads() && on_result) on_result(result_);
    return false;
  }

  // What has to be known before the folder is touched.
  Json identity_checked() {
    fit_to_labels(plan_, images_.info().multi_label);
    fit_to_target(plan_, images_.info().classes);
    if (plan_.target_class >= 0 && !images_.has_label_other_than(plan_.target_class))
      fail_usage("the label of all ", images_.size(), " images is the target, ", printable(plan_.target_name),
                 ", so that there is nothing to attack; choose another --target, or other images");
    fit_to_classes(plan_, loaded_.shape.classes);
    check_gradients(plan_, request_.weights);
    check_radius(plan_.threat, loaded_.shape.channels * loaded_.shape.height * loaded_.shape.width);
    if (request_.exact && couples_images(plan_))
      fail_usage("--exact runs each image alone, but router losses are of a whole batch; leave out one of them");
    return attack_identity(request_, plan_, attacked_, images_);
  }

  // What needs no attack; warnings come before hours of it.
  void check_model() {
    const AttackBatch first = images_.read(0, std::min(kCheckedImages, images_.size())).batch;
    const int64_t together = request_.exact ? 1 : kCheckedImages;
    const at::Tensor logits = model_verdict(model_, first, first.pixels, together).logits;
    if (request_.noise && !model_.randomised()) fail_usage("--noise: no router of this model has noise; leave it out");
    check_passes(plan_, model_.randomised());
    warnings_ = model_warnings(model_, first, plan_.stages, has_gradients(plan_));
    const AttackContext context{plan_.threat, request_.seed};
    const at::Tensor noisy = random_start(first, context, StartKind::surface, "random noise", 0);
    const auto attack = stage_attack(plan_.stages.at(0), context);
    const auto [counted, reached] =
        attack_success(logits, model_verdict(model_, first, noisy, together).logits, first.labels.label,
                       with_chosen_targets(*attack, first, logits).labels.target);
    random_noise_ = share_json(reached.sum().item<int64_t>(), counted.sum().item<int64_t>());
    for (const std::string& note : plan_.notes) log_info(note);
    if (!group_.leads()) return;
    for (const std::string& warning : warnings_) log_warning(warning);
  }

  bool attacked_together() const { return model_.coupled() || couples_images(plan_); }

  // Images that influence each other are attacked in the batches of evaluation, if memory allows.
  void begin_if_new() {
    if (folder_->batch() == 0) begin();
    if (request_.batch > 0 && request_.batch != folder_->batch() && !request_.exact)
      fail(printable(folder_->path()), " was begun with batches of ", folder_->batch(), ", not ", request_.batch,
           ", which round differently; leave out --batch, or choose another folder with --out");
  }

  void begin() {
    const AttackBatch first = images_.read(0, std::min<int64_t>(16, images_.size())).batch;
    BatchMemory found = find_batch_size(inner_, first, has_gradients(plan_));
    if (attacked_together()) found.batch = std::min(found.batch, shared_batch(loaded_));
    if (request_.batch > 0) found.batch = request_.batch;
    log_info("batches of ", found.batch, " images");
    folder_->begin(found.batch, found.bytes_per_image);
  }

  int64_t batch() const { return request_.exact && request_.batch > 0 ? request_.batch : batch_; }
  int64_t piece_images() const { return batch() * std::max<int64_t>(1, kPieceImages / batch()); }
  int64_t pass_images() const { return request_.exact ? 1 : batch_; }

  // Where the saved pieces end. They may go on after a piece that was removed.
  int64_t images_done() const {
    const std::vector<PieceRange> done = folder_->pieces();
    const int64_t last = done.empty() ? 0 : done.back().last;
    if (last > images_.size())
      fail("the saved piece ", printable(done.back().path), " is of more images than the ", images_.size(),
           " attacked ones; remove that folder and run the same command again");
    return last;
  }

  // In rounds: of the pieces that are next, rank r attacks the r-th, and rank 0 saves all.
  void attack_shards() {
    const auto done = [this] {
      return std::stoll(dist::from_rank_zero(group_, [this] { return std::to_string(images_done()); }));
    };
    int64_t next = done();
    Progress progress("attack", images_.size(), "images", next);
    for (; next < images_.size(); next = done()) {
      progress.update(next);
      attack_round(next, std::min(images_.size(), next + group_.size() * piece_images()), progress);
    }
    progress.finish();
  }

  void attack_round(int64_t next, int64_t end, Progress& progress) {
    const int64_t first = std::min(end, next + group_.rank() * piece_images()),
                  last = std::min(end, first + piece_images());
    std::unique_ptr<AttackSaver> saver;
    std::exception_ptr stopped;  // by Ctrl-C: what the other ranks have done is saved before this one ends
    std::string piece;
    try {
      if (first < last) {
        saver = make_saver(first, last);
        PieceAttack how{plan_, {plan_.threat, request_.seed, {}, saver.get()}, batch(), request_.exact};
        how.progress = show_stages(progress, plan_.stages, next, end);
        const AttackShard shard = attack_shard(model_, images_.read(first, last), how);
        if (group_.size() == 1)
          write_piece(folder_->piece_path(first, last), shard);
        else
          piece = packed_piece(shard);
      }
    } catch (const Error&) {
      if (!interrupted()) throw;
      stopped = std::current_exception();
    }
    const std::vector<std::string> pieces = dist::gather_bytes(group_, piece);
    dist::from_rank_zero(group_, [&] {
      save_pieces(next, pieces);
      return std::string();
    });
    const bool any_stopped = group_.any(stopped != nullptr);
    if (stopped) std::rethrow_exception(stopped);
    if (any_stopped) fail("interrupted; run the same command again to go on with the images that are left");
    if (saver) saver->remove();
  }

  // Null where this rank does not see the folder: its images are attacked from their begin after a kill.
  std::unique_ptr<AttackSaver> make_saver(int64_t first, int64_t last) {
    const std::string folder = attack_folder(request_);
    std::error_code error;
    if (!group_.leads() && !fs::exists(folder + "/" + kAttackIndex, error)) return nullptr;
    return std::make_unique<AttackSaver>(AttackFolder::state_path(folder, first, last), model_, request_.save_every);
  }

  static std::string packed_piece(const AttackShard& piece) {
    const PrivateFolder folder("sparsight-attack");
    write_piece(folder.path() + "/piece", piece);
    return packed_folder(folder.path() + "/piece");
  }

  // Writes the ranks' pieces in order, from image `next` on, up to the first rank that has none.
  void save_pieces(int64_t next, const std::vector<std::string>& pieces) const {
    for (const std::string& piece : pieces) {
      if (piece.empty()) return;
      const int64_t last = std::min(images_.size(), next + piece_images());
      const std::string path = folder_->piece_path(next, last);
      std::error_code error;
      if (!fs::exists(path, error)) unpack_folder(path, piece);
      next = last;
    }
  }

  // The piece with the images that it is of.
  AttackShard load_piece(const PieceRange& range, const AttackedBatch& images) const {
    AttackShard piece = read_piece(range.path, {images.batch.pixels.sizes().vec(), loaded_.shape.classes,
                                                plan_.stages.size(), plan_.targeted(), measures_distances(plan_)});
    piece.batch = images.batch;
    return piece;
  }

  void save_images(AttackFiles& files) const {
    Progress progress("save", images_.size(), "images");
    for (const PieceRange& range : folder_->pieces()) {
      group_.any(true);
      files.add_images(load_piece(range, images_.read(range.first, range.last)));
      progress.update(range.last);
    }
    files.commit_images();
    progress.finish();
  }

  Json report(const OnAttackResult& on_result) {
    AttackSummary summary(plan_);
    std::optional<AttackFiles> files;
    FirstError writing;  // the attack is done: that its files cannot be written must not keep its result from the user
    writing.unless_failed([&] { save_images(files.emplace(folder_->path(), plan_)); });
    AttackExamples examples(request_.examples, loaded_.data.classes);
    Checksum data;
    const bool clipped = clips_all(plan_);
    Progress progress("check", images_.size(), "images");
    for (const PieceRange& range : folder_->pieces()) {
      group_.any(true);
      const AttackedBatch images = images_.read(range.first, range.last);
      AttackShard piece = load_piece(range, images);
      if (!writing.failed()) piece.pixels = files->saved_pixels(range.first, range.last);
      const PieceCheck check = check_piece(model_, images, piece, plan_.threat, clipped, pass_images());
      summary.add(piece, check);
      writing.unless_failed([&] { files->add(images, piece, check); });
      examples.add(images, piece, plan_);
      data.update(images.checksum.data(), images.checksum.size());
      progress.update(range.last);
    }
    progress.finish();
    Json result = attack_description(request_, plan_, attacked_, images_);
    result["data"]["fingerprint"] = data.hex();
    result["data"].update(images_.preprocessing());
    result["batch"] = batch();
    result["peak_bytes_per_image"] = folder_->bytes_per_image() > 0 ? Json(folder_->bytes_per_image()) : Json();
    result["attack"]["noise"] = model_.randomised();
    result["images_share_capacity"] = model_.coupling().capacity;
    result["images_choose_together"] = model_.coupling().choices;
    result["images_share_objective"] = couples_images(plan_);
    result["pixels_clipped"] = clipped;
    result.update(summary.json());
    for (std::string& warning : summary.warnings()) warnings_.push_back(std::move(warning));
    result["random_noise"] = random_noise_;
    const Json& success = result["success_rate"];
    if (random_noise_["count"] > 0 && success["of"] > 0 && random_noise_["value"] >= success["value"])
      warnings_.emplace_back(
          "random noise of this size fools as many images as the attack: it is too weak, or epsilon too large to tell");
    result["warnings"] = warnings_;
    result["notes"] = plan_.notes;
    result = AttackFolder::with_format(result);
    if (on_result) on_result(result);
    writing.rethrow();
    Json settings = loaded_.config;
    settings["attack"] = identity_.at("attack");
    files->commit({images_.info(), request_.split, loaded_.path, loaded_.step, loaded_.weights, settings}, result);
    write_attack_examples(folder_->path(), examples.all());
    write_file_atomically(folder_->file("examples.html"), attack_page(result, examples.all()));
    folder_->finish(result);
    return *folder_->result();
  }

  AttackRequest request_;
  dist::Group& group_;
  AttackPlan plan_;
  AttackedRun attacked_;
  const LoadedModel& loaded_;
  AttackedImages images_;
  Json identity_;
  std::optional<AttackFolder> folder_;  // of rank 0
  int64_t batch_ = 0;                   // that of the folder
  Json result_;                         // of an attack that was finished before
  AttackedImageModel inner_;
  ObservedModel model_;
  std::vector<std::string> warnings_;
  Json random_noise_;  // which share of the first correct images it fools
};

}  // namespace

std::string attack_folder(const AttackRequest& request) {
  if (!request.out.empty()) return request.out;
  std::error_code ignored;
  const fs::path path(request.path);
  const fs::path run =
      fs::is_directory(path, ignored) ? path : path.parent_path() / (path.stem().string() + "_attacks");
  return (fs::is_directory(path, ignored) ? run / "attacks" : run) / attack_name(request);
}

Json run_attack(const AttackRequest& request, const OnAttackResult& on_result, dist::Group& group) {
  return AttackWork(request, group).run(on_result);
}

Json run_attack(const AttackRequest& request, const OnAttackResult& on_result) {
  dist::Group alone;
  return run_attack(request, on_result, alone);
}

}  // namespace sparsight
