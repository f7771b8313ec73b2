#include "sparsight/reproduce/result_text.h"

#include <gtest/gtest.h>

#include "sparsight/io/checked_json.h"
#include "sparsight/reproduce/results.h"
#include "sparsight/reproduce/trial_files.h"
#include "tests/reproduce/toy_figure.h"

namespace sparsight::result_text_test {
namespace {

using testing::toy_figure;

// ours: 10 +- 1 at x = 1, one trial of 20 at 2, nothing at 4 (its jobs failed); theirs: nothing.
struct Fixture {
  explicit Fixture(bool synthetic) : figure(toy_figure()) {
    const std::vector<Json> jobs = figure.jobs({});
    std::vector<Json> results(jobs.size());
    results[0] = {{"y", 9}}, results[1] = {{"y", 11}}, results[2] = {{"y", 20}};
    outcome.figure = &figure;
    outcome.run = {Scale::smoke, "", "run"};
    outcome.data.kind = synthetic ? RunData::Kind::synthetic : RunData::Kind::published;
    outcome.data.text = synthetic ? "glyphs, \"drawn\"" : "toys as published, fingerprint 0123456789abcdef";
    outcome.data.fingerprint = "0123456789abcdef";
    outcome.table = make_table(figure, jobs, results, !synthetic);
    outcome.table.rows.resize(3);
    outcome.claims = {{"y grows | always", "10 to 20", true, "by eye"},
                      {"y falls", "10 to 20", false},
                      {"y ends", "-", {}, "by eye", 2}};
    outcome.finished = {{jobs[0], {{"y", 9}, {"log", {1, 2}}}}};
    outcome.failed = {{jobs[4], "out of\nluck"}};
    outcome.seconds = 2.5;
  }
  Figure figure;
  FigureOutcome outcome;
};

TEST(ResultText, Numbers) {
  EXPECT_EQ(number_text(95.25, 1), "95.2");
  EXPECT_EQ(number_text(2007040000000000.0, 0), "2.007e+15");
  EXPECT_EQ(number_text(-1234567890, 0), "-1.235e+09");
  EXPECT_EQ(number_text(0.00012, 1), "0.00012");
  EXPECT_EQ(number_text(0, 1), "0.0");
  EXPECT_EQ(value_text(Json(300)), "300");
  EXPECT_EQ(value_text(Json(0.5)), "0.5");
  EXPECT_EQ(value_text(Json("joint")), "joint");
}

TEST(ResultText, CsvHasEveryNumber) {
  EXPECT_EQ(result_csv(Fixture(false).outcome),
            "model,x,trials,y,y_deviation,y_paper,y_paper_deviation,y_difference,data\n"
            "ours,1,2,10,1,10,0.5,0,\"toys as published, fingerprint 0123456789abcdef\"\n"
            "ours,2,1,20,,,,,\"toys as published, fingerprint 0123456789abcdef\"\n"
            "ours,4,0,,,42,,,\"toys as published, fingerprint 0123456789abcdef\"\n");
  EXPECT_EQ(result_csv(Fixture(true).outcome),
            "model,x,trials,y,y_deviation,data\n"
            "ours,1,2,10,1,\"synthetic substitute data: glyphs, \"\"drawn\"\"\"\n"
            "ours,2,1,20,,\"synthetic substitute data: glyphs, \"\"drawn\"\"\"\n"
            "ours,4,0,,,\"synthetic substitute data: glyphs, \"\"drawn\"\"\"\n");
}

TEST(ResultText, NotesAboutARunFollowThoseOfTheFigure) {
  Fixture fixture(false);
  fixture.figure.notes = {"drawn by hand"};
  fixture.figure.run_notes = [](const FigureRun& run) {
    return std::vector<std::string>{"in " + run.folder, "of " + scale_name(run.scale)};
  };
  EXPECT_EQ(outcome_notes(fixture.outcome), (std::vector<std::string>{"drawn by hand", "in run", "of smoke"}));
  EXPECT_EQ(result_json(fixture.outcome).at("notes"), Json({"drawn by hand", "in run", "of smoke"}));
  EXPECT_NE(result_markdown(fixture.outcome).find("- drawn by hand\n- in run\n- of smoke\n"), std::string::npos);
}

TEST(ResultText, Markdown) {
  EXPECT_EQ(result_markdown(Fixture(false).outcome),
            "# toy/line: a line\n\n"
            "| model |   x | trials |       y (%) |       paper | difference |\n"
            "|:----- | ---:| ------:| -----------:| -----------:| ----------:|\n"
            "| ours  |   1 |      2 | 10.0 +- 1.0 | 10.0 +- 0.5 |        0.0 |\n"
            "| ours  |   2 |      1 |        20.0 |           - |          - |\n"
            "| ours  |   4 |      0 |           - |        42.0 |          - |\n\n"
            "+- is the standard deviation (dividing by n) over seeds 0, 1.\n"
            "Scale smoke; data: toys as published, fingerprint 0123456789abcdef; total compute time 2.5 s.\n\n"
            "## Claims\n\n"
            "| claim             | measured | test   | verdict              |\n"
            "|:----------------- |:-------- |:------ |:-------------------- |\n"
            "| y grows \\| always | 10 to 20 | by eye | holds                |\n"
            "| y falls           | 10 to 20 | -      | does not hold        |\n"
            "| y ends            | -        | by eye | undecided at 2 seeds |\n\n"
            "## Failed jobs\n\n"
            "- model ours, x 4, seed 0: out of\\x0aluck\n");
}

TEST(ResultText, JsonSaysWhatHolds) {
  const Json json = result_json(Fixture(false).outcome);
  EXPECT_EQ(json["rows"][0]["y"]["paper"], 10);
  EXPECT_EQ(json["rows"][0]["y"]["paper_deviation"], 0.5);
  EXPECT_EQ(json["rows"][0]["y"]["values"], Json({9.0, 11.0}));
  EXPECT_EQ(json["rows"][0]["seeds"], Json({0, 1}));
  EXPECT_EQ(json["data"]["fingerprint"], "0123456789abcdef");
  EXPECT_EQ(json["rows"][2]["y"]["mean"], nullptr);
  EXPECT_EQ(json["claims"][1]["holds"], false);
  EXPECT_EQ(json["claims"][2]["holds"], nullptr);
  EXPECT_EQ(json["claims"][2]["verdict"], "undecided at 2 seeds");
  EXPECT_EQ(json["failed"][0]["error"], "out of\nluck");
  EXPECT_EQ(json["deviation"], "+- is the standard deviation (dividing by n) over seeds 0, 1");
  const Json synthetic = result_json(Fixture(true).outcome);
  EXPECT_EQ(synthetic["data"]["kind"], "synthetic");
  EXPECT_EQ(synthetic["data"]["text"], "glyphs, \"drawn\"");
  EXPECT_FALSE(synthetic["rows"][0]["y"].contains("paper"));
}

TEST(TrialFiles, HaveEveryTrial) {
  const Fixture fixture(false);
  EXPECT_EQ(trials_csv(fixture.outcome), "model,x,seed,y\nours,1,0,9\nours,1,1,11\nours,2,0,20\n");
  EXPECT_EQ(trials_jsonl(fixture.outcome), checked_json_line({{"settings", {{"model", "ours"}, {"x", 1}, {"seed", 0}}},
                                                              {"result", {{"y", 9}, {"log", {1, 2}}}}}));
}

}  // namespace
}  // namespace sparsight::result_text_test
