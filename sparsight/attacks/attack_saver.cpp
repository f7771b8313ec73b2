#include "sparsight/attacks/attack_saver.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <ATen/ops/empty_strided.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr const char *kStateFormat = "sparsight-attack-state", *kStateVersion = "1";
constexpr const char* kRemoveState = "; remove that file and run the same command again";
constexpr double kShareOfSaves = 0.05;  // of the time, at most
constexpr int64_t kMaxInState = 1'000'000'000'000'000;

std::string tensor_name(size_t level, size_t index) { return cat(level, ".", index); }

int64_t checked_count(const Json& json) {
  const int64_t count = json.is_number_integer() ? json.get<int64_t>() : -1;
  if (count < 0 || count > kMaxInState) fail("a count of ", printable(shown(json)));
  return count;
}

// Restores the layout in memory too: kernels may round differently for other strides.
at::Tensor with_strides(const at::Tensor& values, const Json& json) {
  if (json.empty()) return values;
  std::vector<int64_t> strides;
  int64_t last = 0;  // position in memory
  bool fits = json.is_array() && std::ssize(json) == values.dim();
  for (int64_t d = 0; fits && d < values.dim(); ++d) {
    const int64_t steps = values.size(d) - 1;
    strides.push_back(std::min(checked_count(json[static_cast<size_t>(d)]), values.numel()));  // any where steps is 0
    fits = steps >= 0 && (steps == 0 || strides.back() <= (values.numel() - 1) / steps);  // `last` does not overflow
    last += steps * strides.back();
  }
  if (!fits || last != values.numel() - 1) fail("strides that do not fit a tensor");
  const at::Tensor tensor = at::empty_strided(values.sizes(), strides, values.options());
  if (!tensor.is_non_overlapping_and_dense()) fail("strides that overlap");
  return tensor.copy_(values);
}

// Whether a loop that was saved is that which runs now.
bool same_state(const std::vector<at::Tensor>& saved, const std::vector<at::Tensor*>& current) {
  bool same = saved.size() == current.size();
  for (size_t i = 0; same && i < saved.size(); ++i)
    same = !current[i]->defined() || !saved[i].defined() ||
           (current[i]->sizes() == saved[i].sizes() && current[i]->scalar_type() == saved[i].scalar_type());
  return same;
}

}  // namespace

AttackSaver::AttackSaver(std::string path, AttackedModel& model, double every)
    : path_(std::move(path)), model_(model), every_(every) {
  next_save_ = start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(every_));
  std::error_code ignored;
  if (!fs::exists(path_, ignored)) return;
  std::string version;
  try {
    TensorFile file = read_safetensors(path_);
    if (file.metadata["format"] != kStateFormat) fail("no format ", kStateFormat);
    version = file.metadata["version"];
    if (version == kStateVersion) read(file);
  } catch (const std::exception& error) {
    refuse_damaged(error.what());
  }
  if (version != kStateVersion)
    fail("the saved state ", printable(path_), " has format version \"", printable(version),
         "\", this program reads version ", kStateVersion, kRemoveState);
}

double AttackSaver::seconds() const {
  return seconds_before_ + std::chrono::duration<double>(Clock::now() - start_).count();
}

void AttackSaver::check_finished() const {
  if (!saved_.empty()) refuse_damaged("the attack ended without what it holds");
}

void AttackSaver::refuse_damaged(const std::string& reason) const {
  fail("the saved state ", printable(path_), " of the attack is damaged (", reason, ")", kRemoveState);
}

void AttackSaver::remove() const {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

void AttackSaver::enter(Level level) {
  level.counts = model_.counts();
  level.seconds = seconds();
  const size_t depth = running_.size();
  if (!saved_.empty()) {
    const Level& found = saved_.at(depth);
    if (found.key != level.key || !same_state(found.saved, level.current))
      fail("the saved state ", printable(path_), " is of another --batch, or of another version of this program; ",
           "give the same --batch as before, or remove that file and run the same command again");
    level.done = found.done, level.counts = found.counts, level.seconds = found.seconds;
    for (size_t i = 0; i < found.saved.size(); ++i) *level.current[i] = found.saved[i];
    model_.set_counts(level.counts);
    seconds_before_ = level.seconds, start_ = Clock::now();
    if (depth + 1 == saved_.size()) saved_.clear();
  }
  running_.push_back(std::move(level));
}

void AttackSaver::mark(int64_t done) {
  Level& level = running_.back();
  level.done = done;
  level.counts = model_.counts();
  level.seconds = seconds();
}

void AttackSaver::save_if_due() {
  const Clock::time_point before = Clock::now();
  if (before < next_save_) return;
  try {
    save();
  } catch (const Error& error) {
    if (!warned_)
      log_warning("the state of the attack cannot be saved (", error.what(),
                  "); it goes on, but if it is killed, all since the last save is run again");
    warned_ = true;
  }
  const Clock::time_point after = Clock::now();
  const std::chrono::duration<double> wait(
      std::max(every_, std::chrono::duration<double>(after - before).count() / kShareOfSaves));
  next_save_ = after + std::chrono::duration_cast<Clock::duration>(every_ > 0 ? wait : wait * 0);
}

Json AttackSaver::to_json(const Level& level) {
  Json queries = Json::array(), strides = Json::array();
  for (const auto& [image, count] : level.counts.queries) queries.push_back({image, count});
  for (const at::Tensor* tensor : level.current) {
    const bool usual = !tensor->defined() || tensor->is_contiguous() || !tensor->is_non_overlapping_and_dense();
    strides.push_back(!tensor->defined() ? Json() : usual ? Json::array() : Json(tensor->strides().vec()));
  }
  const AttackCounts& counts = level.counts;
  return {{"key", level.key},
          {"done", level.done},
          {"seconds", level.seconds},
          {"cost", {counts.cost.queries, counts.cost.gradients}},
          {"queries", queries},
          {"gradients", {counts.gradients.images, counts.gradients.zero, counts.gradients.not_finite}},
          {"strides", strides}};
}

AttackSaver::Level AttackSaver::from_json(const Json& json) {
  Level level;
  if (!json.at("key").is_number_unsigned()) fail("a key of ", printable(shown(json["key"])));
  level.key = json["key"].get<uint64_t>();
  level.done = checked_count(json.at("done"));
  level.seconds = json.at("seconds").get<double>();
  if (!std::isfinite(level.seconds) || level.seconds < 0) fail(level.seconds, " seconds");
  const auto at = [&](const char* name, size_t i) { return checked_count(json.at(name).at(i)); };
  level.counts.cost = {at("cost", 0), at("cost", 1)};
  level.counts.gradients = {at("gradients", 0), at("gradients", 1), at("gradients", 2)};
  for (const Json& entry : json.at("queries"))
    level.counts.queries[checked_count(entry.at(0))] = checked_count(entry.at(1));
  return level;
}

void AttackSaver::save() const {
  TensorFile file;
  Json levels = Json::array();
  for (size_t l = 0; l < running_.size(); ++l) {
    levels.push_back(to_json(running_[l]));
    for (size_t i = 0; i < running_[l].current.size(); ++i)
      if (running_[l].current[i]->defined()) file.tensors.emplace_back(tensor_name(l, i), *running_[l].current[i]);
  }
  file.metadata = {{"format", kStateFormat}, {"version", kStateVersion}, {"levels", json_text(levels)}};
  create_folder(fs::path(path_).parent_path());
  write_safetensors(path_, file);
}

void AttackSaver::read(const TensorFile& file) {
  const std::map<std::string, at::Tensor> tensors(file.tensors.begin(), file.tensors.end());
  for (const Json& json : parse_json(file.metadata.at("levels"), "its description")) {
    Level level = from_json(json);
    for (const Json& strides : json.at("strides"))
      level.saved.push_back(strides.is_null()
                                ? at::Tensor()
                                : with_strides(tensors.at(tensor_name(saved_.size(), level.saved.size())), strides));
    saved_.push_back(std::move(level));
  }
}

double attack_seconds(const AttackSaver* saver) {
  if (saver) return saver->seconds();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

SavedLoop::SavedLoop(AttackSaver* saver, uint64_t key, std::vector<at::Tensor*> state) : saver_(saver) {
  if (!saver_) return;
  saver_->enter({.key = key, .current = std::move(state)});
  done_ = saver_->running_.back().done;
}

SavedLoop::~SavedLoop() {
  if (saver_) saver_->running_.pop_back();
}

int64_t SavedLoop::done(int64_t count) const {
  if (done_ > count) saver_->refuse_damaged(cat(done_, " iterations of a loop of ", count));
  return done_;
}

void SavedLoop::mark(int64_t done) const {
  if (saver_) saver_->mark(done);
}

void SavedLoop::mark_and_save(int64_t done) const {
  if (!saver_) return;
  saver_->mark(done);
  saver_->save_if_due();
}

}  // namespace sparsight
