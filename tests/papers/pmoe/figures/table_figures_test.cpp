// The tables of the pMoE paper that need no training.
#include <gtest/gtest.h>

#include <filesystem>

#include "sparsight/data/readers/image.h"
#include "sparsight/papers/register_figures.h"
#include "sparsight/reproduce/run_figure.h"
#include "tests/support/program.h"

#include <nlohmann/json.hpp>

namespace sparsight::pmoe::pmoe_figures_test {
namespace {

using testing::TemporaryFolder;

FigureOutcome run(const std::string& name, const TemporaryFolder& folder) {
  FigureRequest request;
  request.run = {Scale::small, "", folder.path("run")};
  return run_figure(find_figure(name), request);
}

const ResultRow& find_row(const FigureOutcome& outcome, const std::string& first, const std::string& second) {
  for (const ResultRow& row : outcome.table.rows)
    if (row.settings.at(outcome.table.axes[0]) == first && row.settings.at(outcome.table.axes[1]) == second) return row;
  throw std::runtime_error("no row " + first + ", " + second);
}

std::vector<std::optional<bool>> verdicts(const FigureOutcome& outcome) {
  std::vector<std::optional<bool>> holds;
  for (const Claim& claim : outcome.claims) holds.push_back(claim.holds);
  return holds;
}

// B = 20 samples: separate 20 * 40 * 2 * 784 = 1,254,400, joint 20 * 40 * 6 * 784, CNN 20 * 40 * 16 * 784.
TEST(PmoeTable1, P64_CountsBesideFormulas) {
  const TemporaryFolder folder;
  const FigureOutcome outcome = run("pmoe/table1", folder);
  const ResultRow& separate = find_row(outcome, "separate", "an iteration: forward");
  EXPECT_EQ(separate.settings.at("formula"), "B d l m");
  EXPECT_DOUBLE_EQ(*separate.mean[0], 1254400);
  EXPECT_DOUBLE_EQ(*separate.mean[1], 1254400);
  EXPECT_DOUBLE_EQ(*find_row(outcome, "joint", "an iteration: backward").mean[1], 3763200);
  EXPECT_DOUBLE_EQ(*find_row(outcome, "CNN", "an iteration: forward").mean[1], 10035200);
  EXPECT_DOUBLE_EQ(*find_row(outcome, "joint", "routers: forward").mean[1], 20 * 8 * 16 * 784);
  EXPECT_NEAR(*find_row(outcome, "joint", "routers: backward, by pairs").mean[2], 5.0 / 6, 1e-12);  // (l - 1) / l
  EXPECT_NEAR(*find_row(outcome, "joint", "routers: backward, around the mean").mean[2], 2, 1e-12);
  // l^4 / eps^8 = 16e8 iterations, and the product with those of an iteration.
  EXPECT_NEAR(*find_row(outcome, "separate", "iterations").mean[0] / 16e8, 1, 1e-12);
  EXPECT_NEAR(*find_row(outcome, "separate", "total").mean[0] / (16e8 * 1254400), 1, 1e-12);
  EXPECT_EQ(verdicts(outcome), (std::vector<std::optional<bool>>{true, true, true, true}));
}

TEST(PmoeBoundsTable, P62_P63_EveryRowAndWhatIsDisputed) {
  const TemporaryFolder folder;
  const FigureOutcome outcome = run("pmoe/bounds", folder);
  EXPECT_EQ(outcome.table.rows.size(), 35u);  // 3 theorems of 5, 2 of 4, routers 4 + 1, ratios 4, errors 3
  EXPECT_DOUBLE_EQ(*find_row(outcome, "routers (lemma 4.1)", "samples N_r").mean[0], 256 * 8);  // n^2 / gap^3
  EXPECT_DOUBLE_EQ(*find_row(outcome, "CNN / separate", "samples").mean[0], 16777216);          // 8^8
  EXPECT_DOUBLE_EQ(*find_row(outcome, "error at fixed N, CNN", "eps").mean[0], 4);              // 16^(1/2)
  EXPECT_EQ(find_row(outcome, "CNN / joint", "neurons").settings.at("printed"), "n^10 / k^3 l^6");
  // Slips of the paper: neurons of the CNN over those of joint training, lemma H.4, the gap's exponent for c classes.
  EXPECT_EQ(verdicts(outcome), (std::vector<std::optional<bool>>{true, true, true, true, false, true, false, false}));
}

TEST(PmoeFig3, DrawsBothClasses) {
  const TemporaryFolder folder;
  const FigureOutcome outcome = run("pmoe/fig3", folder);
  EXPECT_EQ(outcome.data.text, "glyphs for MNIST");
  for (const FigurePicture& picture : outcome.figure->pictures) {
    const at::Tensor image = read_image(folder.path("run/" + picture.file));
    EXPECT_EQ(image.size(1), 3 * 112);
    EXPECT_EQ(image.size(2), 3 * 112);
  }
  EXPECT_EQ(verdicts(outcome), (std::vector<std::optional<bool>>{true, true}));
}

}  // namespace
}  // namespace sparsight::pmoe::pmoe_figures_test
