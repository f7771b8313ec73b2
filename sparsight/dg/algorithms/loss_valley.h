// Which segments of a training SWAD averages (Cha et al. 2021, "SWAD: Domain Generalization by Seeking Flat Minima",
// algorithm 1). A segment is the time between two evaluations: the mean of the weights after its steps, and the
// validation loss at its end. With queues of the last N_s and N_e segments:
//
//   start      once the first loss of the N_s queue is its minimum: the average begins with that segment, and the
//              threshold is the mean loss of the N_s queue times 1 + r. Segments before it count too, back to the first
//              whose loss is above the threshold, at most N_e - N_s of them
//   then       when the head of the full N_e queue is past the start: the valley ends, and with it the training, if all
//              losses in the queue are above the threshold; else the head is averaged
//   at the end the heads are averaged as long as some loss of the rest is not above the threshold
//
// Where the valley has no start, the last segment is the result. All segments weigh the same.
//
// Differs from the authors' code, which skips the oldest segment that it looks back to and counts the first one twice,
// here each counts once.
#pragma once

#include <deque>
#include <optional>

#include "sparsight/train/algorithm.h"

namespace sparsight {

struct LossValleyOptions {
  int64_t start = 3;       // N_s
  int64_t end = 6;         // N_e
  double tolerance = 0.3;  // r
};

struct WeightSegment {
  NamedTensors mean;
  double loss = 0;
  int64_t number = 0;  // 0, 1, ... in the training
};

class LossValley {
 public:
  explicit LossValley(const LossValleyOptions& options) : options_(options) {}

  // The next segment; ignored once the valley has ended.
  void add(WeightSegment segment);
  // The valley if the training ends here; this one can go on.
  LossValley finished() const;

  bool has_started() const { return start_ >= 0; }
  bool has_ended() const { return ended_; }
  double threshold() const { return threshold_; }
  // Which segments are in the average, in the order in which they were added.
  const std::vector<int64_t>& averaged() const { return averaged_; }
  // The mean of these segments, or in finished() the last segment if none is. Empty before.
  const NamedTensors& average() const { return average_; }

  void save(AlgorithmState& state) const;
  void load(const AlgorithmState& state);

 private:
  double min_loss(size_t from) const;  // of the N_e queue from a position on
  void try_to_start();
  void include(const WeightSegment& segment);
  bool is_averaged(const WeightSegment& segment) const;
  void take_rest();

  LossValleyOptions options_;
  std::deque<WeightSegment> queue_;  // the last max(N_s, N_e)
  NamedTensors average_;
  std::vector<int64_t> averaged_;
  int64_t segments_ = 0, start_ = -1;
  double threshold_ = 0;
  bool ended_ = false;
};

}  // namespace sparsight
