#include "sparsight/report/run/run_comparison.h"

#include <gtest/gtest.h>

#include "sparsight/io/atomic_file.h"
#include "sparsight/report/report.h"
#include "tests/report/run_fixture.h"
#include "tests/support/errors.h"

namespace sparsight::run_comparison_test {
namespace {

using testing::TemporaryFolder;

std::string make_run_folder(const TemporaryFolder& folder, const std::string& name, Json done) {
  return testing::write_run(folder, name, testing::lines({testing::eval_record("test", 100, 0.875), std::move(done)}));
}

}  // namespace

// Wilson's interval of 875 of 1,000, with z = 1.959964: (0.875 + z^2/2000 -+ z sqrt(0.875 * 0.125 / 1000 +
// z^2 / 4e6)) / (1 + z^2/1000) = 0.853056 and 0.894074.
TEST(RunComparison, ShowsAccuracySizeAndCostOfEachRun) {
  const TemporaryFolder folder;
  const std::string moe = make_run_folder(folder, "moe",
                                          {{"kind", "done"},
                                           {"step", 100},
                                           {"seconds", 83},
                                           {"parameters", 373196},
                                           {"active_parameters", 999},
                                           {"multiply_adds", 12945664}});
  const std::string older = make_run_folder(folder, "older", {{"kind", "done"}, {"step", 100}});
  const Rows rows = compared_with(moe + "/", {older});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1], (std::vector<std::string>{"moe", "test", "87.50 %", "85.31 to 89.41", "373.2 k", "999", "12.95 M",
                                               "1 min 23 s"}));
  EXPECT_EQ(rows[2], (std::vector<std::string>{"older", "test", "87.50 %", "85.31 to 89.41", "-", "-", "-", "-"}));
  EXPECT_TRUE(compared_with(moe, {}).empty());
  EXPECT_NE(testing::error_text([&] { compared_with(moe, {folder.path("none")}); }).find("none"), std::string::npos);

  const std::string page = read_file(write_report(moe, folder.path("page.html"), {older}), 1 << 24);
  EXPECT_NE(page.find("<td>older</td>"), std::string::npos);
  EXPECT_EQ(read_file(write_report(moe, folder.path("alone.html")), 1 << 24).find("id=\"comparison\""),
            std::string::npos);
}

}  // namespace sparsight::run_comparison_test
