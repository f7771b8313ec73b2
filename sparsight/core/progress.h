// Progress of a long loop: on a terminal one line that is rewritten, with bar, rate and time left; elsewhere a plain
// line every few seconds; with --log-json one object per line; nothing with --quiet.
//
//   Progress progress("train", steps, "steps");
//   for (...) progress.update(step, "loss 0.41");
//   progress.finish();
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace sparsight {

// What a line of progress shows.
struct ProgressState {
  std::string label;
  std::string unit;   // "images"
  std::string extra;  // "loss 0.41"
  int64_t done = 0;
  int64_t total = 0;  // 0: unknown
  int64_t start = 0;  // of `done` at the beginning (a resumed loop): not counted in the rate
  double seconds = 0;

  double rate() const;          // units per second, 0 when unknown
  double seconds_left() const;  // negative when unknown
};

// "train  ████░░░░ 40/100  12.3 steps/s  loss 0.41  5 s left", cut to `columns`. The bar takes the remaining space, 24
// cells at most; there is no bar if that is too little or `bar` is false.
std::string progress_text(const ProgressState& state, bool bar, int columns);

// UTF-8 text, cut to at most `columns` characters.
std::string cut_to(const std::string& text, int columns);

// "5 s", "3 min 20 s", "2 h 05 min"
std::string duration_text(double seconds);

class Progress {
 public:
  // `total` 0: unknown. `start`: work done before (a resumed loop).
  Progress(const std::string& label, int64_t total, const std::string& unit, int64_t start = 0);
  ~Progress();  // removes the bar of a loop that ended early
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The loop began before this object was made: rate and time taken count from then.
  void set_begin(std::chrono::steady_clock::time_point begin) { begin_ = begin; }

  void update(int64_t done, const std::string& extra = "");
  void add(int64_t more = 1);
  // A last line with the time taken. If it is not called, the loop ended early.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void show(bool last);

  std::mutex mutex_;
  ProgressState state_;
  Clock::time_point begin_, shown_;
  bool bar_, json_, quiet_, finished_ = false;
};

}  // namespace sparsight
