#include "sparsight/core/progress.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/shortened.h"

namespace sparsight::progress_test {
namespace {

ProgressState forty_of_hundred() {
  ProgressState state;
  state.label = "train";
  state.unit = "steps";
  state.done = 40;
  state.total = 100;
  state.seconds = 4;  // 10 steps/s, 60 left: 6 s
  return state;
}

// Redirects the log to a string during its lifetime.
class CapturedLog {
 public:
  explicit CapturedLog(LogSettings settings) {
    settings.stream = &stream_;
    set_log(settings);
  }
  ~CapturedLog() { set_log(default_log_settings()); }
  std::string text() const { return stream_.str(); }

 private:
  std::ostringstream stream_;
};

LogSettings plain() {
  LogSettings settings;
  settings.terminal = false;
  return settings;
}

}  // namespace

TEST(Progress, TextHasCountsRateExtraAndTimeLeft) {
  ProgressState state = forty_of_hundred();
  state.extra = "loss 0.41";
  EXPECT_EQ(progress_text(state, false, 100), "train  40/100  10.0 steps/s  loss 0.41  6 s left");
}

TEST(Progress, BarFillsInProportion) {
  ProgressState state = forty_of_hundred();
  state.done = 50;  // half of 24 cells
  const std::string text = progress_text(state, true, 200);
  std::string bar;
  for (int i = 0; i < 12; ++i) bar += "█";
  for (int i = 0; i < 12; ++i) bar += "░";
  EXPECT_NE(text.find(bar + " 50/100"), std::string::npos) << text;
}

TEST(Progress, WorkDoneBeforeAResumeIsNotInTheRate) {
  ProgressState state = forty_of_hundred();
  state.start = 20;  // 20 steps in 4 s
  EXPECT_DOUBLE_EQ(state.rate(), 5);
  EXPECT_DOUBLE_EQ(state.seconds_left(), 12);
}

TEST(Progress, UnknownTotalHasNoTimeLeft) {
  ProgressState state = forty_of_hundred();
  state.total = 0;
  EXPECT_EQ(progress_text(state, true, 100), "train  40  10.0 steps/s");
}

TEST(Progress, TheBarTakesWhatTheTextLeavesFree) {
  const std::string text = "40/100  10.0 steps/s  6 s left";  // 30 characters, after the 7 of "train  "
  EXPECT_EQ(progress_text(forty_of_hundred(), true, 48), "train  ████░░░░░░ " + text);  // 48 - 37 - 1 = 10 cells
  EXPECT_EQ(progress_text(forty_of_hundred(), true, 44), "train  ██░░░░ " + text);
  EXPECT_EQ(progress_text(forty_of_hundred(), true, 43), "train  " + text);  // 5 cells are too few
  EXPECT_EQ(progress_text(forty_of_hundred(), true, 37), "train  " + text);
}

TEST(Progress, ALineOfTrainingEndsWithTheTimeLeftOn80Columns) {
  ProgressState state = forty_of_hundred();
  state.done = 22;
  state.total = 46;
  state.extra = "epoch 1/2  loss 2.521";
  const std::string text = progress_text(state, true, 79);
  EXPECT_TRUE(text.ends_with("  4 s left")) << text;  // 24 of 5.5 steps/s
  EXPECT_NE(text.find("█"), std::string::npos) << text;
}

TEST(Progress, TextIsCutAtCharactersNotBytes) {
  ProgressState state = forty_of_hundred();
  state.label = "prüfen";
  EXPECT_EQ(progress_text(state, true, 3), "prü");
}

TEST(Progress, Durations) {
  EXPECT_EQ(duration_text(5.4), "5 s");
  EXPECT_EQ(duration_text(59.6), "1 min 00 s");
  EXPECT_EQ(duration_text(200), "3 min 20 s");
  EXPECT_EQ(duration_text(7500), "2 h 05 min");
}

TEST(Progress, PlainOutputHasOneLineAtTheEndForAShortLoop) {
  CapturedLog log(plain());
  Progress progress("decode", 1000, "images");
  for (int i = 1; i <= 1000; ++i) progress.update(i);
  progress.finish();
  const std::string text = log.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_EQ(text.rfind("decode  1000", 0), 0u) << text;
}

TEST(Progress, CountsFromTheBeginningOfTheLoop) {
  CapturedLog log(plain());
  Progress progress("predict", 300, "images");
  progress.set_begin(std::chrono::steady_clock::now() - std::chrono::seconds(30));
  progress.update(300);
  progress.finish();
  EXPECT_NE(log.text().find("  in 30 s"), std::string::npos) << log.text();
}

TEST(Progress, QuietSaysNothing) {
  LogSettings settings = plain();
  settings.quiet = true;
  CapturedLog log(settings);
  Progress progress("decode", 10, "images");
  progress.update(10);
  progress.finish();
  EXPECT_EQ(log.text(), "");
}

TEST(Progress, JsonIsOneObjectALine) {
  LogSettings settings = plain();
  settings.json = true;
  CapturedLog log(settings);
  Progress progress("decode", 10, "images");
  progress.update(10, "loss 1");
  progress.finish();
  const Json line = Json::parse(log.text());
  EXPECT_EQ(line["level"], "progress");
  EXPECT_EQ(line["message"], "decode");
  EXPECT_EQ(line["done"], 10);
  EXPECT_EQ(line["extra"], "loss 1");
  EXPECT_EQ(line["finished"], true);
}

TEST(Progress, ABarThatEndedEarlyIsRemoved) {
  LogSettings settings = plain();
  settings.terminal = true;
  CapturedLog log(settings);
  show_status("half done");
  { Progress progress("decode", 10, "images"); }
  EXPECT_EQ(log.text(), "half done\r\x1b[K");
}

TEST(Log, ALineAppearsAboveTheStatus) {
  LogSettings settings = plain();
  settings.terminal = true;
  CapturedLog log(settings);
  show_status("50 %");
  log_info("saved ", 3, " files");
  EXPECT_EQ(log.text(), "50 %\r\x1b[Ksaved 3 files\n50 %");
}

TEST(Log, QuietKeepsWarnings) {
  LogSettings settings = plain();
  settings.quiet = true;
  CapturedLog log(settings);
  log_info("said");
  log_warning("heard");
  EXPECT_EQ(log.text(), "warning: heard\n");
}

TEST(Progress, NamesAreEscapedBeforeTheTextIsCut) {
  ProgressState state = forty_of_hundred();
  state.label = "\x1b[2J";
  EXPECT_EQ(progress_text(state, false, 6), "\\x1b[2");
  state.label = "train";
  state.extra = "\u202E 1";
  EXPECT_NE(progress_text(state, false, 100).find("\\u202e 1"), std::string::npos);
}

TEST(Log, NamesDoNotSteerTheTerminal) {
  LogSettings settings = plain();
  settings.terminal = true;
  CapturedLog log(settings);
  log_warning("\x1b]0;x\x07 \u009B31m \u202E\nerror: forged");
  show_status("\x1b[2J");
  EXPECT_EQ(log.text(), "warning: \\x1b]0;x\\x07 \\u009b31m \\u202e\\x0aerror: forged\n\\x1b[2J");
}

TEST(Log, JsonEscapesWhatSteersTheTerminal) {
  LogSettings settings = plain();
  settings.json = true;
  CapturedLog log(settings);
  log_info("a\u009B\x7F\u202E");
  EXPECT_NE(log.text().find(R"(a\u009b\u007f\u202e)"), std::string::npos) << log.text();
  EXPECT_EQ(Json::parse(log.text())["message"], "a\u009B\x7F\u202E");
}

TEST(Log, JsonReplacesBytesThatAreNotUtf8) {
  LogSettings settings = plain();
  settings.json = true;
  CapturedLog log(settings);
  log_info("file \xff.png");
  const Json line = Json::parse(log.text());
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["message"], "file \xEF\xBF\xBD.png");
}

// A refusal quotes what it refuses, and ends with what to do.
TEST(Log, LongErrorsLoseTheirMiddle) {
  for (const bool json : {false, true}) {
    LogSettings settings = plain();
    settings.json = json;
    CapturedLog log(settings);
    log_line("error", "got \"" + std::string(60000, 'x') + "\"; choose another");
    EXPECT_LT(log.text().size(), 1100u);
    EXPECT_NE(log.text().find("xxx... (59"), std::string::npos) << log.text();
    EXPECT_NE(log.text().find("; choose another"), std::string::npos) << log.text();
  }
  CapturedLog log(plain());
  log_line("error", std::string(1000, 'x'));
  EXPECT_EQ(log.text(), "error: " + std::string(1000, 'x') + "\n");
  CapturedLog results(plain());
  log_info(std::string(5000, 'x'));
  EXPECT_EQ(results.text(), std::string(5000, 'x') + "\n");
}

// "é" has two bytes: 0 to 1, 2 to 3, ... Of 120 bytes 80 are kept: 53, of which the last would be half a character, and
// 26. Left out are 400 - 52 - 26 = 322.
TEST(Shortened, KeepsCharactersWhole) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "\u00E9";
  const std::string cut = shortened(text, 120);
  EXPECT_EQ(cut, text.substr(0, 52) + "... (322 bytes left out) ..." + text.substr(0, 26));
  EXPECT_TRUE(is_utf8(cut));
  EXPECT_EQ(shortened(text, 400), text);
}

}  // namespace sparsight::progress_test
