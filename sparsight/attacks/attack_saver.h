// Saves where a long attack is, about once a minute, so that one that is killed goes on there with the same bits.
//
// Whatever iterates, a cascade over its attacks or an attack over its runs and steps, has a SavedLoop with the tensors
// that its next iteration needs. All else is made again: it follows from these, the images and the seed.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "sparsight/attacks/attacked_model.h"
#include "sparsight/core/options.h"
#include "sparsight/io/safetensors.h"

namespace sparsight {

class AttackSaver {
 public:
  // path: of a safetensors file, which need not exist; if it does, the loops go on as it says. every: seconds between
  // two saves, more where they would take longer than a twentieth of the time. Raises Error for a damaged file. A save
  // that fails is a warning, the first time.
  AttackSaver(std::string path, AttackedModel& model, double every);

  // The time of the attack so far, with that before it was killed.
  double seconds() const;
  // For an attack that is done. check_finished() raises Error if a loop of the file did not run again.
  void check_finished() const;
  void remove() const;
  // Raises Error for what a file holds.
  [[noreturn]] void refuse_damaged(const std::string& reason) const;

 private:
  friend class SavedLoop;
  using Clock = std::chrono::steady_clock;

  // A loop within the ones before it, as of its last finished iteration.
  struct Level {
    uint64_t key = 0;
    int64_t done = 0;
    double seconds = 0;
    AttackCounts counts = {};
    std::vector<at::Tensor> saved = {};     // of one that was read
    std::vector<at::Tensor*> current = {};  // of one that runs
  };
  void enter(Level level);
  void mark(int64_t done);
  void save_if_due();
  void save() const;
  void read(const TensorFile& file);
  static Json to_json(const Level& level);
  static Level from_json(const Json& json);

  std::string path_;
  AttackedModel& model_;
  double every_;
  Clock::time_point start_ = Clock::now(), next_save_;
  double seconds_before_ = 0;
  bool warned_ = false;
  std::vector<Level> running_, saved_;  // outermost first; saved_ is empty once all of its loops run again
};

// Seconds since some moment before the attack, without those between its end by a kill and its start again.
double attack_seconds(const AttackSaver* saver);

class SavedLoop {
 public:
  // key: tells loops apart. state: variables that live longer than this; those of a loop that was saved get the values
  // they had, and the model its counts at that time. Nothing is done without a saver.
  SavedLoop(AttackSaver* saver, uint64_t key, std::vector<at::Tensor*> state);
  ~SavedLoop();
  SavedLoop(const SavedLoop&) = delete;
  SavedLoop& operator=(const SavedLoop&) = delete;

  // Iterations before the attack was killed, of `count`: where to go on. Raises Error for more.
  int64_t done(int64_t count) const;
  // After each iteration, when the state is that of the next one. A loop may leave saving to the loops within it.
  void mark(int64_t done) const;
  void mark_and_save(int64_t done) const;

 private:
  AttackSaver* saver_;
  int64_t done_ = 0;
};

}  // namespace sparsight
