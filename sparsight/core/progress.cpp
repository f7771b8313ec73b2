#include "sparsight/core/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

constexpr double kTerminalPeriod = 0.1, kLinePeriod = 5.0;  // minimum seconds between two displayed updates
constexpr int kMaxCells = 24, kMinCells = 6;                // of a bar

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), value >= 100 ? "%.0f" : value >= 10 ? "%.1f" : "%.2f", value);
  return text;
}

std::string bar_text(double fraction, int cells) {
  const int full = static_cast<int>(std::lround(std::clamp(fraction, 0.0, 1.0) * cells));
  std::string bar;
  for (int cell = 0; cell < cells; ++cell) bar += cell < full ? "█" : "░";
  return bar;
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// Characters of UTF-8 text.
int length(const std::string& text) { return static_cast<int>(std::ranges::count_if(text, begins_character)); }

}  // namespace

std::string cut_to(const std::string& text, int columns) {
  int seen = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if (begins_character(text[i]) && ++seen > columns) return text.substr(0, i);
  return text;
}

double ProgressState::rate() const { return seconds > 0 ? static_cast<double>(done - start) / seconds : 0; }

double ProgressState::seconds_left() const {
  if (total <= 0 || rate() <= 0) return -1;
  return static_cast<double>(std::max<int64_t>(total - done, 0)) / rate();
}

std::string duration_text(double seconds) {
  const int64_t whole = std::llround(seconds);
  char text[64];
  if (whole < 60) return cat(whole, " s");
  if (whole < 3600) {
    std::snprintf(text, sizeof(text), "%d min %02d s", static_cast<int>(whole / 60), static_cast<int>(whole % 60));
    return text;
  }
  std::snprintf(text, sizeof(text), "%lld h %02d min", static_cast<long long>(whole / 3600),
                static_cast<int>(whole / 60 % 60));
  return text;
}

std::string progress_text(const ProgressState& state, bool bar, int columns) {
  const std::string label = printable(state.label) + "  ";
  std::string text = std::to_string(state.done);
  if (state.total > 0) text += "/" + std::to_string(state.total);
  text += state.rate() > 0 ? "  " + short_number(state.rate()) + " " + state.unit + "/s" : " " + state.unit;
  if (!state.extra.empty()) text += "  " + printable(state.extra);
  if (state.seconds_left() >= 0) text += "  " + duration_text(state.seconds_left()) + " left";
  if (const int cells = std::min(kMaxCells, columns - length(label + text) - 1);
      bar && state.total > 0 && cells >= kMinCells)
    text = bar_text(static_cast<double>(state.done) / static_cast<double>(state.total), cells) + " " + text;
  return cut_to(label + text, columns);
}

Progress::Progress(const std::string& label, int64_t total, const std::string& unit, int64_t start)
    : begin_(Clock::now()), shown_(begin_) {
  const LogSettings log = log_settings();
  quiet_ = log.quiet;
  json_ = log.json;
  bar_ = log.terminal && !json_;
  state_.label = label;
  state_.unit = unit;
  state_.total = total;
  state_.done = state_.start = start;
}

Progress::~Progress() {
  if (bar_ && !finished_) show_status("");
}

void Progress::update(int64_t done, const std::string& extra) {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.done = done;
  state_.extra = extra;
  show(false);
}

void Progress::add(int64_t more) {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.done += more;
  show(false);
}

void Progress::finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (finished_) return;
  show(true);
  finished_ = true;
}

void Progress::show(bool last) {
  if (quiet_ || finished_) return;
  const Clock::time_point now = Clock::now();
  if (!last && std::chrono::duration<double>(now - shown_).count() < (bar_ ? kTerminalPeriod : kLinePeriod)) return;
  shown_ = now;
  state_.seconds = std::chrono::duration<double>(now - begin_).count();
  if (json_) {
    log_line("progress", state_.label,
             Json{{"done", state_.done},
                  {"total", state_.total},
                  {"unit", state_.unit},
                  {"per_second", state_.rate()},
                  {"seconds", state_.seconds},
                  {"extra", state_.extra},
                  {"finished", last}});
  } else if (last) {
    if (bar_) show_status("");
    ProgressState line = state_;
    line.total = 0;  // a finished loop has no time left
    log_line("info", progress_text(line, false, 1000) + "  in " + duration_text(state_.seconds));
  } else if (bar_) {
    show_status(progress_text(state_, true, log_settings().columns - 1));
  } else {
    log_line("info", progress_text(state_, false, 1000));
  }
}

}  // namespace sparsight
