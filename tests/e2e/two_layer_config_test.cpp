// configs/pmoe/two_layer.toml as the start of sweeps: any router, number of samples, experts, patches and filters, and
// any cells, by --set alone.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/io/metrics_log.h"
#include "tests/data/sets/set_files.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace sparsight::testing::two_layer_config_test {
namespace {

// The last evaluation on the test split.
Json trained(const std::string& run, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"train", test::source_path("configs/pmoe/two_layer.toml"), "--out", run,
                                     "--quiet"};
  std::vector<std::string> settings{"data.validation=10", "data.test=20", "train.epochs=1", "run.threads=1"};
  settings.insert(settings.end(), more.begin(), more.end());
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  Json last;
  for (const Json& line : read_metrics(run + "/metrics.jsonl"))
    if (line["kind"] == "eval" && line["split"] == "test") last = line;
  return last;
}

}  // namespace

TEST(TwoLayerConfig, TakesAnyRouterAndSize) {
  const TemporaryFolder folder;
  for (const std::string router : {"patch_choice", "softmax_topk", "switch_top1", "expert_choice"}) {
    const Json result = trained(folder.path(router), {"data.cells=glyphs", "data.train=40", "router.name=" + router,
                                                      "moe.experts=4", "moe.hidden=3"});
    EXPECT_EQ(result["images"], 20) << router;
    EXPECT_EQ(result["layers"][0]["experts"], 4) << router;
  }
  const Json two = trained(folder.path("l2"), {"data.cells=glyphs", "data.train=40", "router.patches=2"});
  EXPECT_EQ(two["layers"][0]["load"][0], 2 * 20);  // l of each image
  EXPECT_FALSE(trained(folder.path("cnn"), {"data.cells=glyphs", "data.train=40", "moe.blocks=[]"}).is_null());
}

TEST(TwoLayerConfig, TakesAnyCells) {
  const TemporaryFolder folder;
  for (const char* name : {"cat", "dog", "fox"})
    for (const char* part : {"train", "val", "test"}) folder.write(cat(part, "/", name, "/1.png"), grey_png(100));
  const Json result = trained(folder.path("run"), {"data.cells=folder", "data.root=" + folder.path(),
                                                   "data.cell_side=4", "data.train=40", "experts.channels=3"});
  EXPECT_EQ(result["cells"].size(), 3u);
  EXPECT_EQ(result["cells"][2]["class"], "fox");
}

}  // namespace sparsight::testing::two_layer_config_test
